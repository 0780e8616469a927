"""The digits are learnt."""

from click.testing import CliRunner

from pullback.cli import commands
from pullback.demos.digits import PICTURE, load_digits, run_digits

PNG = b"\x89PNG\r\n\x1a\n"


def test_the_digits_are_learnt(tmp_path):
    seen = []
    found = run_digits(out=tmp_path / "new", progress=lambda *part: seen.append(part))
    assert found.accuracies[-1] > 0.95
    assert found.losses[-1] < 0.2 * found.losses[0]
    assert found.n_misread == round((1 - found.accuracies[-1]) * found.n_test)
    assert found.picture == tmp_path / "new" / PICTURE
    assert found.picture.read_bytes().startswith(PNG)
    assert len(seen) == len(found.losses)
    assert str(found).startswith(f"{found.accuracies[-1]:.1%} of 450 held-out digits read rightly after 15 epochs")


def test_the_digits_are_split_once_and_for_all():
    digits = load_digits()
    assert digits.train_images.shape == (1347, 64)
    assert digits.test_labels.shape == (450,)
    assert digits.train_images.max() == 1.0


def test_the_digits_command(tmp_path):
    result = CliRunner().invoke(commands, ["demo", "digits", "--epochs", "2", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("epoch 1: loss ")
    assert "held-out digits read rightly after 2 epochs" in result.stdout
