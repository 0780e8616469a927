"""Which operations may wait until the body of a step has gone on."""

from tests.staging.generated.both_ways import outside

from pullback.rules.catalogue import registry
from pullback.staging.shadow.postponed_operations import may_wait


def test_what_may_fail_or_change_its_spec_by_value_does_not_wait():
    assert may_wait("write")
    assert may_wait(registry.named("operator_multiply"))
    assert may_wait(registry.named("getitem"))
    assert not may_wait(outside)
