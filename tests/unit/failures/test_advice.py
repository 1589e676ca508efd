import pytest

from worker.failures.advice import ADVICE, advice
from worker.failures.model import Category
from worker.failures.vocabulary import PROVIDERS


@pytest.mark.parametrize("category", Category)
@pytest.mark.parametrize("provider", sorted(PROVIDERS))
def test_every_category_and_provider_has_one_sentence(category, provider):
    sentence = advice(category, provider)
    assert sentence == ADVICE[category, provider]
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert sentence.count(". ") == 0
    assert 30 <= len(sentence) <= 120
    assert sentence.isascii()


def test_nothing_else_is_there():
    assert set(ADVICE) == {(category, provider) for category in Category for provider in PROVIDERS}


def test_a_provider_with_its_own_means_has_its_own_words():
    assert "docker events" in advice(Category.SANDBOX_LOST, "docker")
    assert advice(Category.SANDBOX_LOST, "e2b") != advice(Category.SANDBOX_LOST, "daytona")


def test_an_unknown_provider_gets_the_general_sentence():
    assert advice(Category.CANCELLED, "podman") == advice(Category.CANCELLED, "none")
