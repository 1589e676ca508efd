"""A transfer that broke, by the words of those who carried it: a damaged pack after them is only an echo."""

from worker.failures.model import Category
from worker.failures.rules import Rule
from worker.failures.shapes import shape

TRANSFER_RULES = (
    Rule(
        name="remote_corrupt",
        category=Category.CORRUPT_DATA,
        reason="object_corrupt",
        why="git upload-pack: the server's repository is damaged; that it then hangs up is the echo",
        example="remote: aborting due to possible repository corruption on the remote side.",
        text=shape("repository corruption on the remote side"),
    ),
    Rule(
        name="transfer_broken",
        category=Category.TRANSIENT_NETWORK,
        reason="connection_reset",
        why="curl's transport errors (libcurl-errors(3)) in their own words and by number, as git prints them",
        example="error: RPC failed; curl 18 transfer closed with outstanding read data remaining",
        text=shape(
            "empty reply from server",
            "transfer closed with outstanding",
            "transferred a partial file",
            "data left to read",
            "failure when receiving data from the peer",
            "failed sending data to the peer",
            r"(?:recv|send) failure: ",
            "was not closed cleanly",
            r"http/?2 framing layer",
            r"proxy connect (?:aborted|connection closed)",
            r"rpc failed; curl (?:5|6|7|16|18|28|35|52|55|56|92|95|96)\b",
            r"rpc failed; result=(?:5|6|7|16|18|28|35|52|55|56|92)\b",
        ),
    ),
    Rule(
        name="tls_cut",
        category=Category.TRANSIENT_NETWORK,
        reason="connection_reset",
        why="OpenSSL, GnuTLS, LibreSSL, Schannel, libgit2, pyOpenSSL: the peer left in the middle of TLS",
        example="fatal: unable to access 'x': gnutls_handshake() failed: Error in the pull function.",
        text=shape(
            r"unexpected[_ ]eof[_ ]while[_ ]reading",
            "eof occurred in violation of protocol",
            "received early eof",
            r"sslerror\(",
            "sslzeroreturn",
            r"ssl_error_(?:syscall|zero_return)",
            r"sysc?allerror",
            r"bad[_ ]record[_ ]mac",
            "decryption failed",
            r"gnutls_handshake\(\) failed",
            "gnutls recv error",
            "gnutls send error",
            "error in the pull function",
            "error in the push function",
            "tls connection was non-properly terminated",
            "unexpected tls packet",
            r"ssl_(?:read|write)(?:\(\))?: ",
            "ssl_shutdown",
            r"alert[_ ]internal[_ ]error",
            r"schannel: (?:failed to (?:receive|send)|server closed|recv)",
            "ssl/tls connection failed",
            "unable to establish ssl connection",
            "tls connect error",
        ),
    ),
)
