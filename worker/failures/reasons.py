"""The closed list of reasons: why a failure happened, in one stable word."""


def words(lines: str) -> frozenset[str]:
    """Split a text of words into a closed list."""
    return frozenset(lines.split())


REASONS = words("""
    unknown other

    cancelled deadline soft_time_limit hard_timeout output_limit killed terminated crashed process_limit
    command_timeout program_missing queue_wait expired worker_lost attempts_exhausted

    rate_limit sso_required ip_not_allowed suspended repository_blocked lfs_quota permission_missing
    credential_rejected credential_missing host_key proxy_denied token_replication token_expired secret_binding
    unsigned

    disk_full disk_quota out_of_memory read_only file_denied remote_failed

    promisor_object bundle_truncated bundle_prerequisites pack_truncated object_corrupt archive_invalid
    bundle_header ref_refused ref_moved unsafe_tree unsafe_link too_many_objects too_many_paths object_format
    archive_unsafe digest_mismatch size_mismatch head_mismatch checkout_incomplete credential_persisted

    index_lock unfinished_operation ref_missing commit_missing not_a_commit destination_taken dubious_ownership
    lfs_missing default_branch_missing borrowed_objects
    github_unreachable app_key_invalid not_set not_failed incomplete too_small too_long
    not_a_repository path_invalid conflict git_too_old submodule_invalid moved lfs_object_missing
    repository_not_found not_found layout_invalid owner_directory symlink vanished_file files_changing

    container_gone container_stopped sandbox_gone sandbox_stopped foreign_sandbox process_gone image_missing
    registry_denied state_change name_taken sandbox_spec daemon_unreachable container_starting no_capacity
    account_quota template_missing no_addresses runtime_failed push_refused not_ready
    port_closed stream_cut stream_malformed helper_failed file_replaced kill_unconfirmed create_ambiguous
    provider_full sdk_used_before_fork

    app_authentication_failed app_forbidden app_not_installed installation_suspended permission_not_granted
    repository_not_covered github_unavailable github_answer_garbled redirect_refused unexpected_status
    secret_unsealable secret_key_unknown store_unreachable provider_error

    not_configured sdk_not_installed local_not_allowed image_not_allowed unknown_provider outside_sandbox bad_layout

    server_error server_timeout malformed_answer bad_request tls_invalid dns connect_failed stalled
    connection_reset read_timeout hung_up

    missing required unsupported malformed too_long too_large too_small out_of_range not_https schema
    unsafe_component malformed_url not_github positional_argument bad_value url_scheme url_userinfo
    filter_with_credential unknown_field wrong_type empty unsafe_path exclusive already_terminal fenced

    reply_lost receipt_missing foreign_receipt ledger_lost not_allowed name_mismatch provider_mismatch
    template_mismatch duplicate_path outside_reference output_malformed

    transient_network transient_server rate_limited auth_denied invalid_request policy_denied resource_exhausted
    sandbox_lost timeout_ambiguous operation_in_progress corrupt_data
""")
"""A step that sets ``Failure.reason`` takes it from here; any other word leaves the worker as ``other``.

The last group lets a category stand for itself when a step knows no more.
"""
