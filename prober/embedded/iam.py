"""Access policies (google.iam.v1.IAMPolicy): kept and shown, never enforced.

Topics, subscriptions, snapshots and schemas have them. Every caller of this server has all permissions. The etag protects a policy from
concurrent changes, as in the service.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Final

from google.iam.v1 import iam_policy_pb2, policy_pb2  # type: ignore[import-untyped]

from prober.embedded import errors, resources
from prober.embedded.registry import Registry
from prober.embedded.schemas import Schemas

METHODS: Final[Mapping[str, Any]] = {
    "SetIamPolicy": iam_policy_pb2.SetIamPolicyRequest,
    "GetIamPolicy": iam_policy_pb2.GetIamPolicyRequest,
    "TestIamPermissions": iam_policy_pb2.TestIamPermissionsRequest,
}
"""Class of the request messages of each method."""

_FIRST_ETAG: Final = b"\x00 \x01"  # of a policy that was never set: "ACAB" in base64
_VERSIONS: Final = frozenset({0, 1, 3})
_CONDITIONS_VERSION: Final = 3
_DEFAULT_MASK: Final = ("bindings", "etag")  # proto, SetIamPolicyRequest.update_mask
_MEMBERS: Final = ("user:", "serviceAccount:", "group:", "domain:", "principal:", "principalSet:", "deleted:", "projectOwner:")
_EVERYBODY: Final = frozenset({"allUsers", "allAuthenticatedUsers"})
_ROLES: Final = ("roles/", "projects/", "organizations/")
_EVERY_KIND: Final = ("delete", "get", "getIamPolicy", "setIamPolicy")
PERMISSIONS: Final[Mapping[str, frozenset[str]]] = {
    collection: frozenset(f"pubsub.{collection}.{verb}" for verb in (*_EVERY_KIND, *own))
    for collection, own in {
        "topics": ("attachSubscription", "detachSubscription", "publish", "update", "updateTag"),
        "subscriptions": ("consume", "update"),
        "snapshots": ("seek", "update"),
        "schemas": ("attach", "commit", "listRevisions", "rollback"),
    }.items()
}
"""Permissions on one resource (documentation, "Access control with IAM"); `create`, `list` and `validate` are permissions on a project."""


class Iam:
    """The policies of one service. A resource that is created again under its name starts without a policy."""

    def __init__(self, registry: Registry, schemas: Schemas) -> None:
        self._kept: Mapping[str, Mapping[str, object]] = {
            "topics": registry.topics,
            "subscriptions": registry.subscriptions,
            "snapshots": registry.snapshots,
            "schemas": schemas.schemas,
        }
        self._policies: dict[str, tuple[object, Any]] = {}  # by name of the resource: the resource itself, and its policy
        self._etags = count(1)
        self.methods: Mapping[str, Callable[[Any], Any]] = {
            "SetIamPolicy": self._set,
            "GetIamPolicy": self._get,
            "TestIamPermissions": self._test,
        }
        """Methods by name, from a request message to a response message. They raise `ServiceError`."""

    def _set(self, request: Any) -> Any:
        """Set a policy. Raises ABORTED if its etag is not that of the current policy."""
        resource, known = self._policy(request.resource)
        wanted = request.policy
        if wanted.etag and wanted.etag != known.etag:
            raise errors.ServiceError(
                errors.Code.ABORTED,
                "There were concurrent policy changes. Please retry the whole read-modify-write with exponential backoff.",
            )
        _check(wanted)
        updated = policy_pb2.Policy()
        updated.CopyFrom(known)
        updated.version = wanted.version or known.version
        mask = request.update_mask.paths or _DEFAULT_MASK
        for field in ("bindings", "audit_configs"):
            if field in mask:
                updated.ClearField(field)
                getattr(updated, field).extend(getattr(wanted, field))
        updated.etag = next(self._etags).to_bytes(8, "big")
        self._policies[request.resource] = (resource, updated)
        return updated

    def _get(self, request: Any) -> Any:
        return self._policy(request.resource)[1]

    def _test(self, request: Any) -> Any:
        """Return the requested permissions that this kind of resource has, since none is enforced; none if it does not exist.

        Wildcards are rejected (proto, TestIamPermissionsRequest.permissions).
        """
        collection = _collection(request.resource)
        for permission in request.permissions:
            if "*" in permission:
                raise errors.invalid("permissions", permission)
        known = PERMISSIONS[collection] if request.resource in self._kept[collection] else frozenset()
        return iam_policy_pb2.TestIamPermissionsResponse(permissions=[one for one in request.permissions if one in known])

    def _policy(self, name: str) -> tuple[object, Any]:
        collection = _collection(name)
        resources.check_name(name, collection)
        resource = self._kept[collection].get(name)
        if resource is None:
            raise errors.not_found(name)
        owner, policy = self._policies.get(name, (None, None))
        return resource, policy if owner is resource else policy_pb2.Policy(etag=_FIRST_ETAG)


def _collection(name: str) -> str:
    """Return `topics` for `projects/P/topics/ID`. Raises INVALID_ARGUMENT for a name of a resource without policies."""
    parts = name.split("/")
    if len(parts) != 4 or parts[2] not in PERMISSIONS:
        raise errors.invalid_name(name)
    return parts[2]


def _check(policy: Any) -> None:
    """Check that a policy is well-formed. Raises INVALID_ARGUMENT. Conditions require version 3 (proto, Policy.version)."""
    if policy.version not in _VERSIONS:
        raise errors.invalid("policy.version")
    for binding in policy.bindings:
        if not binding.role.startswith(_ROLES):
            raise errors.invalid("policy.bindings.role")
        if not all(member.startswith(_MEMBERS) or member in _EVERYBODY for member in binding.members):
            raise errors.invalid("policy.bindings.members")
        if binding.HasField("condition") and policy.version != _CONDITIONS_VERSION:
            raise errors.invalid("policy.version")
