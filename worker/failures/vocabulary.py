"""The closed lists: every word that may leave the worker in a cause.

A value that is no member becomes ``other``. To let a new word out, add it here; nothing else needs a change.
"""

import errno
import signal
from collections.abc import Mapping
from types import MappingProxyType

from worker.failures.model import Category, Credential, EndedBy
from worker.failures.reasons import REASONS, words

OTHER = "other"
"""Stands for every value that is no member of its list."""


CODES = words("""
    clone_failed copy_back_failed dispatch_failed sandbox_failed lifecycle_failed maintenance_failed
    internal_error managed_tool_dispatch_failed managed_tool_outcome_unknown managed_tool_failed
    remote_workspace_operation_failed remote_workspace_capture_failed remote_workspace_archive_failed
    workspace_disk_full workspace_operation_in_progress workspace_archive_invalid invalid_request worker_lost
    cancelled expired queue_wait retry_publish_failed hard_timeout retry_exhausted other
""")
"""What a cause is about: the token before the colon."""

OPERATIONS = words("""
    sandbox clone copy_back capture deliver import dispatch collect bootstrap create connect find run read write
    keep_alive release extend mint revoke unseal lifecycle maintenance sweep reap recover publish
""")
STAGES = words("""
    begin republish run validate installation access_token mint unseal acquire create connect find
    start wait layout version prepare clone init fetch checkout submodules lfs verify rename link baseline
    helper archive publish capture quiesce transfer import parse index store deliver merge patch record
    bootstrap upload stage input launch dispatch receipt collect output transport exec read write keep_alive release
    revoke reap sweep lease queue body outcome record_start record_end redis broker
""")
EFFECTS = words("read write mixed undeclared")
PROVIDERS = words("local docker daytona e2b github none")
PROGRAMS = words("""
    git git_lfs git_upload_pack git_index_pack docker sh bash tar gzip curl ssh timeout setsid mv cp rm mkdir ln
    find sha256sum dd cat kill env python launcher helper
""")
SYSCALLS = words("""
    open openat read write close stat lstat mkdir rename unlink link symlink chmod chown fsync truncate mmap
    fork exec execve spawn kill connect bind listen accept send recv getaddrinfo socket pipe readdir scandir
""")
FIELDS = words("""
    schema run_id request sandbox sandbox_provider sandbox_id sandbox_spec sandbox_spec_image sandbox_spec_env
    sandbox_spec_memory_mb sandbox_spec_cpus sandbox_spec_pids sandbox_spec_strict sandbox_spec_ttl repository
    repository_url repository_host repository_owner repository_name ref ref_branch ref_tag ref_commit depth
    single_branch submodules lfs filter credential credential_kind credential_box credential_installation_id
    credential_username after after_keep after_release after_ttl env argv path url owner name deadline ttl
    seconds attempts host_repository artifact_store artifact branch commit baseline origin include exclude max_file
    quiesce on_loss store deliver deliver_repository deliver_branch recovers key base
    tool tool_store dispatch_id issued_at arguments secrets timeout package manifest manifest_schema manifest_name
    manifest_version manifest_description manifest_entrypoint manifest_input_schema manifest_output
    manifest_output_limit manifest_timeout manifest_provider manifest_template manifest_env manifest_effect
""")
"""Names of request fields, dots written as underscores."""

EXCEPTIONS = words("""
    OSError ConnectionError ConnectionRefusedError ConnectionResetError ConnectionAbortedError BrokenPipeError
    TimeoutError FileNotFoundError FileExistsError PermissionError NotADirectoryError IsADirectoryError
    InterruptedError BlockingIOError ChildProcessError ProcessLookupError gaierror herror SSLError SSLEOFError
    SSLZeroReturnError SSLCertVerificationError CertificateError ValueError TypeError KeyError IndexError
    AttributeError LookupError RuntimeError NotImplementedError AssertionError MemoryError RecursionError
    UnicodeDecodeError UnicodeEncodeError UnicodeError ArithmeticError OverflowError ZeroDivisionError EOFError
    ImportError ModuleNotFoundError StopIteration SystemExit KeyboardInterrupt Exception BaseException
    JSONDecodeError CalledProcessError TimeoutExpired IncompleteRead RemoteDisconnected BadStatusLine
    HTTPException HTTPError HTTPStatusError RequestError TransportError ConnectError ConnectTimeout ReadError
    ReadTimeout WriteError WriteTimeout CloseError PoolTimeout NetworkError ProtocolError LocalProtocolError
    RemoteProtocolError ProxyError UnsupportedProtocol DecodingError TooManyRedirects TimeoutException
    InvalidURL RequestException Timeout ChunkedEncodingError ContentDecodingError RetryError MaxRetryError
    NewConnectionError NameResolutionError ConnectTimeoutError ReadTimeoutError StreamError StreamClosed
    DockerException APIError NotFound ImageNotFound InvalidVersion InvalidArgument NullResource
    TLSParameterError ContainerError BuildError ImageLoadError StreamParseError SocketError
    SoftTimeLimitExceeded TimeLimitExceeded WorkerLostError Terminated WorkerShutdown WorkerTerminate Retry
    Reject Ignore MaxRetriesExceededError OperationalError EncodeError DecodeError ContentDisallowed
    ResponseError BusyLoadingError ReadOnlyError ClusterDownError AuthenticationError NoScriptError
    ValidationError PyJWTError InvalidTokenError InvalidKeyError CryptoError BadSignatureError SandboxException
    SandboxNotFoundException SandboxNotRunningException SandboxUnreachableException NotFoundException
    InvalidArgumentException NotEnoughSpaceException RateLimitException AuthenticationException
    ServiceBusyException CommandExitException TemplateException DaytonaError DaytonaNotFoundError
    DaytonaConnectionError DaytonaTimeoutError DaytonaConnectionTimeoutError DaytonaRateLimitError
    DaytonaConflictError DaytonaAuthenticationError DaytonaForbiddenError DaytonaInternalServerError
    DaytonaBadGatewayError DaytonaServiceUnavailableError ClientConnectorError ClientConnectorDNSError
    ClientConnectionError ClientConnectionResetError ClientOSError ClientPayloadError ClientResponseError
    ServerDisconnectedError ServerTimeoutError SocketTimeoutError OperationFailed InvalidRequest Cancelled TaskFailed
""")
"""Short class names. One that is not here is ``other``: a class may be named by whoever made it."""

ERRNOS = frozenset(errno.errorcode.values())
SIGNALS = frozenset(name.name for name in signal.Signals)

MEMBERS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "operation": OPERATIONS,
        "stage": STAGES,
        "effect": EFFECTS,
        "field": FIELDS,
        "category": frozenset(Category),
        "code": ERRNOS | CODES,
        "signal": SIGNALS,
        "errno": ERRNOS,
        "syscall": SYSCALLS,
        "killed": words("true false"),
        "ended_by": frozenset(EndedBy),
        "program": PROGRAMS,
        "name": EXCEPTIONS,
        "exception": EXCEPTIONS,
        "credential": frozenset(Credential),
        "provider": PROVIDERS,
        "reason": REASONS,
    }
)
"""Key -> its closed list of words."""

INTEGERS: Mapping[str, range] = MappingProxyType(
    {
        "exit": range(256),
        "http": range(100, 600),
        "helper_exit": range(256),
        "attempt": range(1, 1000),
        "attempts": range(1, 1000),
        "deaths": range(1, 1000),
    }
)
"""Key -> the integers it may hold. Narrow on purpose: a wide integer could carry something else."""

KEYS = (
    "operation",
    "stage",
    "effect",
    "field",
    "category",
    "code",
    "exit",
    "http",
    "signal",
    "errno",
    "syscall",
    "killed",
    "ended_by",
    "program",
    "name",
    "exception",
    "credential",
    "provider",
    "reason",
    "helper_exit",
    "attempt",
    "attempts",
    "deaths",
)
"""The one order in which keys are written and accepted."""


def short_name(qualified: str) -> str:
    """The class name of ``httpx.ConnectError``: its last part."""
    return qualified.rpartition(".")[2]
