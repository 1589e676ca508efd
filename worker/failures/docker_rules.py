"""What the Docker engine says. Its API answers 500 for much that is final, so its messages come first."""

from worker.failures.model import Category, Failure
from worker.failures.rules import Rule, shape

DOCKER_RULES = (
    Rule(
        name="docker_container_gone",
        category=Category.SANDBOX_LOST,
        reason="container_gone",
        why="Docker Engine: 404 for a container that was removed",
        example='404 Client Error for http+docker://localhost/v1.41/exec: Not Found ("No such container: 302cbd0948")',
        text=shape("no such container", "no such exec instance"),
    ),
    Rule(
        name="docker_container_stopped",
        category=Category.SANDBOX_LOST,
        reason="container_stopped",
        why="Docker Engine: 409, and runc's and containerd's words for the same",
        example="Error response from daemon: Container 302cbd0948 is not running",
        text=shape(
            r"container [^\n]{0,80}is not running",
            "cannot exec (?:in|a) a? ?(?:container that has run and )?stopped",
            r"container [^\n]{0,80}is (?:paused|restarting|marked for removal|dead)",
            "process not found for container",
            "executing setns process",
            "cannot exec in a stopped (?:state|container)",
        ),
    ),
    Rule(
        name="docker_image_denied",
        category=Category.AUTH_DENIED,
        reason="registry_denied",
        why="a registry's refusal; it also says so of an image that does not exist",
        example="pull access denied for utils, repository does not exist or may require 'docker login'",
        text=shape(
            "pull access denied",
            "requested access to the resource is denied",
            "no basic auth credentials",
            '"code": ?"unauthorized"',
            "access to the requested resource is not authorized",
        ),
    ),
    Rule(
        name="docker_image_missing",
        category=Category.NOT_FOUND,
        reason="image_missing",
        why="Docker Engine: 404",
        example='404 Client Error for http+docker://localhost/v1.41/create: Not Found ("No such image: test:latest")',
        text=shape("no such image", "manifest unknown", r"manifest for [^\n]{1,200} not found", "image not known"),
    ),
    Rule(
        name="docker_image_missing_type",
        category=Category.NOT_FOUND,
        reason="image_missing",
        why="docker-py's type for it",
        example=Failure(operation="clone", stage="create", exception="docker.errors.ImageNotFound", http_status=404),
        exceptions=("ImageNotFound",),
    ),
    Rule(
        name="docker_program_missing",
        category=Category.INVALID_REQUEST,
        reason="program_missing",
        why="runc, exit 126 or 127",
        example='OCI runtime exec failed: exec failed: exec: "git": executable file not found in $PATH: unknown',
        text=shape("executable file not found", r"exec: [^\n]{1,200}no such file or directory"),
    ),
    Rule(
        name="docker_removal_in_progress",
        category=Category.OPERATION_IN_PROGRESS,
        reason="state_change",
        why="Docker Engine: 409 while it removes, 500 while a mount is held",
        example="removal of container 302cbd0948 is already in progress",
        text=shape(r"removal of container [^\n]{0,80}is already in progress", "device (?:is|or resource) busy"),
    ),
    Rule(
        name="docker_name_taken",
        category=Category.INVALID_REQUEST,
        reason="name_taken",
        why="Docker Engine: 409 for a name in use, which after an ambiguous create is our own",
        example='Conflict. The container name "/sandferry-1" is already in use by container "302cbd0948"',
        text=shape(r"name [^\n]{1,120} is already in use", r"endpoint with name [^\n]{1,120} already exists"),
    ),
    Rule(
        name="docker_spec",
        category=Category.INVALID_REQUEST,
        reason="sandbox_spec",
        why="Docker Engine: 400 and 500 for a specification it cannot carry out",
        example='invalid mount config for type "bind": bind source path does not exist',
        text=shape(
            "invalid volume specification",
            "invalid mount config",
            "port is already allocated",
            "error starting userland proxy",
            "invalid reference format",
            "minimum memory limit",
            "unknown runtime",
            "range of cpus is from",
            "no command specified",
            "conflicting options",
        ),
    ),
    Rule(
        name="docker_daemon_unreachable",
        category=Category.TRANSIENT_SERVER,
        reason="daemon_unreachable",
        why="docker and docker-py when the engine is not there; it may be restarting",
        example="docker.errors.DockerException: Error while fetching server API version: ('Connection aborted.')",
        text=shape(
            "cannot connect to the docker daemon", "error while fetching server api version", "docker daemon running"
        ),
    ),
    Rule(
        name="docker_container_not_started",
        category=Category.TRANSIENT_SERVER,
        reason="container_starting",
        why="containerd between create and start",
        example="rpc error: code = 2 desc = containerd: container not started",
        text=shape("container not started"),
    ),
    Rule(
        name="context_deadline",
        category=Category.TIMEOUT_AMBIGUOUS,
        reason="server_timeout",
        why="Go's and gRPC's words for a deadline on the server's side; the work may go on",
        example="shim error: containerd-shim: opening init-stdout failed: context deadline exceeded",
        text=shape(
            "context deadline exceeded(?! while awaiting headers)", r"code = deadlineexceeded", r"\.deadline_exceeded\b"
        ),
    ),
    Rule(
        name="context_cancelled",
        category=Category.CANCELLED,
        reason="cancelled",
        why="Go's word for a call whose caller gave up",
        example="error: Initial deploy failed: context canceled",
        text=shape(r"context cancell?ed", r"operation (?:was )?cancell?ed", "softtimelimitexceeded"),
    ),
)
