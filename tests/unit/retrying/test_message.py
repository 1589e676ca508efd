import pytest

from worker.failures.model import InvalidRequest
from worker.retrying.message import NO_RUN, owner, request_of, run_id_of


class TestRequestOf:
    def test_takes_the_one_argument(self):
        assert request_of((), {"request": {"a": 1}}) == {"a": 1}
        assert request_of((), {"request": None}) is None

    @pytest.mark.parametrize(
        ("args", "kwargs", "reason"),
        [
            (({},), {"request": {}}, "positional_argument"),
            ((), {}, "missing"),
            ((), {"other": 1}, "missing"),
            ((), {"request": {}, "other": 1}, "unknown_field"),
        ],
    )
    def test_refuses_other_shapes(self, args, kwargs, reason):
        with pytest.raises(InvalidRequest) as caught:
            request_of(args, kwargs)
        assert (caught.value.field_name, caught.value.reason) == ("request", reason)


@pytest.mark.parametrize(
    ("kwargs", "expected"),
    [
        ({"request": {"run_id": "run-1:a.b"}}, "run-1:a.b"),
        ({"request": {"run_id": "r" * 128}}, "r" * 128),
        ({"request": {"run_id": "r" * 129}}, NO_RUN),
        ({"request": {"run_id": ""}}, NO_RUN),
        ({"request": {"run_id": "-"}}, NO_RUN),
        ({"request": {"run_id": "../etc"}}, NO_RUN),
        ({"request": {"run_id": "a b"}}, NO_RUN),
        ({"request": {"run_id": "a\n"}}, NO_RUN),
        ({"request": {"run_id": 7}}, NO_RUN),
        ({"request": {}}, NO_RUN),
        ({"request": "text"}, NO_RUN),
        ({}, NO_RUN),
    ],
)
def test_run_id_is_read_only_in_our_form(kwargs, expected):
    assert run_id_of(kwargs) == expected


def test_owner_names_node_and_process():
    assert owner("w1@host", 12) == "w1@host/12"
