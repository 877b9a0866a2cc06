"""The modules that a stage computes with; tests/workflow/test_commands.py holds them against the rules' inputs."""

from heads.base.modules import reached


def test_the_roles_of_heads_are_made_of_their_trees_and_intervals_and_not_of_trainings() -> None:
    found = reached(["cli.roles"], ("analysis", "analysis.lrp", "syntax", "base.bootstrap"))
    assert {"analysis.role_trees", "analysis.roles", "base.bootstrap", "syntax.words"} <= {*found}
    assert not [name for name in found if name.startswith(("training", "analysis.lrp"))]
