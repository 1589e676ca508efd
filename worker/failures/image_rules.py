"""What registries and the engine say about an image."""

from worker.failures.model import Category, Credential, Failure
from worker.failures.rules import Rule
from worker.failures.shapes import shape

IMAGE_RULES = (
    Rule(
        name="docker_image_hidden",
        category=Category.NOT_FOUND,
        reason="image_missing",
        why="without a credential a registry's refusal says no more than that nobody may see such an image",
        example="pull access denied for utils, repository does not exist or may require 'docker login'",
        credentials=(Credential.NONE,),
        text=shape(r"pull access denied for [^\n]{1,200}, repository does not exist[^\n]{0,160}$"),
    ),
    Rule(
        name="docker_image_denied",
        category=Category.AUTH_DENIED,
        reason="registry_denied",
        why="a registry's refusal; it also says so of an image that does not exist",
        example="denied: requested access to the resource is denied",
        text=shape(
            "pull access denied",
            "requested access to the resource is denied",
            "no basic auth credentials",
            r"\"code\": ?\"(?:unauthorized|denied)\"",
            "access to the requested resource is not authorized",
            r"^(?:error: )?denied: ",
            r"^(?:error: )?unauthorized: ",
            r"error response from daemon: (?:denied|unauthorized): ",
            r"error response from daemon: (?:head|get) \"?url\"?: (?:denied|unauthorized)",
            "insufficient_scope",
            "failed to authorize: ",
        ),
    ),
    Rule(
        name="docker_image_missing",
        category=Category.NOT_FOUND,
        reason="image_missing",
        why="Docker Engine: 404",
        example='404 Client Error for http+docker://localhost/v1.41/create: Not Found ("No such image: test:latest")',
        text=shape(
            "no such image",
            r"manifest[_ ]unknown",
            r"manifest for [^\n]{1,200} not found",
            "no matching manifest",
            "image not known",
            r"\bimage [^\s]{1,200} not found",
            r"failed to resolve (?:source metadata|reference) [^\n]{1,300}: not found",
            "name unknown: ",
        ),
    ),
    Rule(
        name="docker_image_missing_type",
        category=Category.NOT_FOUND,
        reason="image_missing",
        why="docker-py's type for it",
        example=Failure(operation="clone", stage="create", exception="docker.errors.ImageNotFound", http_status=404),
        named=True,
        exceptions=("ImageNotFound",),
    ),
)
