# ruff: noqa: RUF001 - the texts are what git prints
import pytest

from worker.failures.classify import classify
from worker.failures.model import Category, Failure
from worker.failures.translations import TRANSLATIONS, in_english


def judged(text: str) -> Category:
    return classify(Failure(operation="clone", stage="fetch", exit_code=128, text=text)).category


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("fatal: Repository 'https://h/o/r/' nicht gefunden", Category.NOT_FOUND),
        ("fatal: Authentifizierung fehlgeschlagen für 'https://h/o/r/'", Category.AUTH_DENIED),
        ("fatal: konnte nicht auf 'u' zugreifen: The requested URL returned error: 503", Category.TRANSIENT_SERVER),
        ("Fehler: Objektdatei .git/objects/ab/c ist leer.", Category.CORRUPT_DATA),
        ("Konnte '/w/.git/index.lock' nicht erstellen: Die Datei existiert bereits.", Category.OPERATION_IN_PROGRESS),
        ("fatal : dépôt 'https://h/o/r/' non trouvé", Category.NOT_FOUND),
        ("fatal : Échec d’authentification pour 'https://h/o/r/'", Category.AUTH_DENIED),
        ("fatal : l'hôte distant a fermé la connexion de manière inattendue", Category.TRANSIENT_NETWORK),
        ("impossible d'écrire x : Aucun espace disponible sur le périphérique", Category.RESOURCE_EXHAUSTED),
        ("fatal: el remoto se colgó de manera inesperada", Category.TRANSIENT_NETWORK),
        ("fatal: Autenticación falló para 'https://h/o/r/'", Category.AUTH_DENIED),
        ("fatal: repositorio 'https://h/o/r/' no encontrado", Category.NOT_FOUND),
        ("ssh: connect to host h port 22: Conexión rehusada", Category.TRANSIENT_NETWORK),
        ("tar: x: No queda espacio en el dispositivo", Category.RESOURCE_EXHAUSTED),
        ("fatal: o lado remoto desligou inesperadamente", Category.TRANSIENT_NETWORK),
        ("fatal: Autenticação falhou para 'https://h/o/r/'", Category.AUTH_DENIED),
        ("fatal: repositório 'https://h/o/r/' inexistente", Category.NOT_FOUND),
        ("fatal: 仓库 'https://h/o/r/' 未找到", Category.NOT_FOUND),
        ("fatal: 'https://h/o/r/' 鉴权失败", Category.AUTH_DENIED),
        ("fatal: 远端意外挂断了\nfatal: 过早的文件结束符（EOF）\nfatal: index-pack 失败", Category.TRANSIENT_NETWORK),
        ("fatal: 目标路径 'r' 已经存在，并且不是一个空目录。", Category.INVALID_REQUEST),
        ("fatal: 远程分支 x 在上游 origin 未发现", Category.INVALID_REQUEST),
        ("fatal: 无法连接到 h：\nh[0]: errno=连接超时", Category.TRANSIENT_NETWORK),
        ("fatal: 版本庫 'https://h/o/r/' 未找到", Category.NOT_FOUND),
        ("fatal: 遠端意外掛斷了", Category.TRANSIENT_NETWORK),
    ],
)  # fmt: skip
def test_git_in_other_languages_is_understood(text, category):
    assert judged(text) is category


@pytest.mark.parametrize(
    ("english", "words"), [(english, words) for english, all_ in TRANSLATIONS.items() for words in all_]
)
def test_every_translation_is_found_and_lower_case(english, words):
    assert words == words.lower()
    assert english in in_english(f"fatal: {words.replace('*', 'x')} etc")


def test_english_stays_as_it_is():
    assert in_english("fatal: early eof") == "fatal: early eof"


def test_typographic_signs_are_plain():
    assert in_english("‘a’ “b”：（c），d。") == "'a' \"b\": (c), d. "
