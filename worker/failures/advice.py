"""What an operator can do about a failure: one sentence for each category and provider."""

from collections.abc import Mapping
from types import MappingProxyType

from worker.failures.model import Category
from worker.failures.vocabulary import PROVIDERS

ANY = "any"
"""Stands for each provider that has no sentence of its own."""

_SENTENCES: Mapping[Category, Mapping[str, str]] = {
    Category.TRANSIENT_NETWORK: {
        ANY: "Nothing to do unless it lasts: then look at DNS, proxy and egress rules of worker and sandbox.",
        "docker": "Nothing to do unless it lasts: then look at the engine's DNS, proxy and networks.",
        "daytona": "Nothing to do unless it lasts: then look at the network limits of your Daytona organization.",
        "e2b": "Nothing to do unless it lasts: then look at the internet access of the E2B template.",
    },
    Category.TRANSIENT_SERVER: {
        ANY: "The other side is in trouble: see its status page; retries go on until the deadline.",
        "docker": "The engine did not answer: see `docker info` and the engine's log on the worker's host.",
        "daytona": "Daytona is in trouble or has no runner free: see its status page, or choose another target.",
        "e2b": "E2B is in trouble or the sandbox still starts: see its status page and the template.",
        "github": "GitHub is in trouble: see githubstatus.com; retries go on until the deadline.",
    },
    Category.RATE_LIMITED: {
        ANY: "Too many requests: lower the workers' concurrency or ask the provider for a higher limit.",
        "docker": "The registry limits pulls: log the engine in, or mirror the image.",
        "daytona": "Daytona limits requests: lower the workers' concurrency or raise the organization's tier.",
        "e2b": "E2B limits requests or concurrent sandboxes: lower the concurrency or raise the plan's limit.",
        "github": "GitHub limits requests: spread them over more App installations or lower the concurrency.",
    },
    Category.TOKEN_REPLICATION: {
        ANY: "The token is too new to be known; if it lasts, check that the App may read the repository.",
    },
    Category.AUTH_DENIED: {
        ANY: "The credential is missing, wrong or lacks a permission: renew it or grant what the repository asks for.",
        "docker": "The engine may not pull this image: log it in, or check the image's name.",
        "daytona": "Check the worker's Daytona API key and its permissions, then the credential of the repository.",
        "e2b": "Check the worker's E2B API key, then the credential of the repository.",
        "github": "Check the App's id, key, installation and permissions on GitHub.",
    },
    Category.NOT_FOUND: {
        ANY: "Check the repository's address; a host also says so of what the credential may not see.",
        "docker": "Check the image's name and tag, and the repository's address.",
        "daytona": "Check the snapshot's name and the repository's address.",
        "e2b": "Check the template's name, that its team is yours, and the repository's address.",
        "github": "Install the App on this repository, or check the repository's name.",
    },
    Category.INVALID_REQUEST: {
        ANY: "The request cannot succeed as it is: correct what the reason names and send it anew.",
        "docker": "The engine cannot carry out this specification: correct mounts, ports, image or command.",
        "daytona": "Daytona refuses this specification: correct resources, volumes or snapshot.",
        "e2b": "E2B refuses this specification: correct template, timeout or metadata.",
    },
    Category.POLICY_DENIED: {
        ANY: "A person or a rule forbids it: ask the owner of the repository, organisation or proxy.",
        "docker": "A rule of the registry or of the egress proxy forbids it: ask whoever runs it.",
        "daytona": "A limit or rule of your Daytona organization forbids it: free resources or raise the tier.",
        "e2b": "A limit or rule of your E2B team forbids it: free sandboxes or raise the plan.",
        "github": "A rule of the organisation (SSO, IP allow list, suspension, quota) forbids it: ask its owners.",
    },
    Category.RESOURCE_EXHAUSTED: {
        ANY: "Disk, memory or processes ran out: give the sandbox more, or clone less (depth, single branch).",
        "local": "This machine's disk, memory or process limit ran out: free some, or raise the limit.",
        "docker": "The container's or the host's disk, memory, pids or networks ran out: raise the limits, or prune.",
        "daytona": "The sandbox's disk, memory or processes ran out: ask for more resources in the specification.",
        "e2b": "The sandbox's disk, memory or processes ran out: build the template with more.",
    },
    Category.SANDBOX_LOST: {
        ANY: "The sandbox is gone: what was not copied back is lost; start a new run.",
        "local": "The sandbox's directory is gone: see who removed it; start a new run.",
        "docker": "The container stopped or was removed: see `docker events` and its exit code; start a new run.",
        "daytona": "The sandbox stopped: start it again to copy its work back, and raise its auto-stop interval.",
        "e2b": "The sandbox reached its timeout or was killed: ask for a longer lease; start a new run.",
    },
    Category.TIMEOUT_AMBIGUOUS: {
        ANY: "Nobody knows whether it was done: look at the sandbox before repeating it, or raise the deadline.",
        "docker": "Nobody knows whether it was done: look at the container, and whether the engine is overloaded.",
        "daytona": "Nobody knows whether it was done: look at the sandbox's state in Daytona before repeating it.",
        "e2b": "Nobody knows whether it was done: look for the sandbox by its metadata before repeating it.",
    },
    Category.OPERATION_IN_PROGRESS: {
        ANY: "Something else is at work there: wait; if it never ends, end it or remove its lock.",
        "docker": "The engine still works on this container: wait; if it never ends, restart the engine.",
        "daytona": "The sandbox is changing its state: wait; if it never ends, recover it in Daytona.",
    },
    Category.CORRUPT_DATA: {
        ANY: "The data is damaged: clone or capture anew; if it comes back, look at the disk and at the repository.",
    },
    Category.CANCELLED: {
        ANY: "Somebody cancelled it: start a new run if that was a mistake.",
    },
    Category.UNKNOWN: {
        ANY: "No rule knows it: see the diagnostics of the attempt, and report the text so that a rule can be added.",
        "docker": "No rule knows it: see the engine's log and the diagnostics of the attempt.",
    },
}

ADVICE: Mapping[tuple[Category, str], str] = MappingProxyType(
    {
        (category, provider): sentences.get(provider, sentences[ANY])
        for category, sentences in _SENTENCES.items()
        for provider in sorted(PROVIDERS)
    }
)
"""(Category, provider) -> a sentence; every pair is there."""


def advice(category: Category, provider: str = "none") -> str:
    """The sentence for an operator; a provider we do not know gets the general one."""
    return ADVICE.get((category, provider), ADVICE[category, "none"])
