"""What git and the C library say in other languages, told in English before rules look.

Sandferry's own commands run with ``LC_ALL=C``; these are for texts that reach us from elsewhere. The words are
those of git's and glibc's catalogues for de, fr, es, pt and zh; ``*`` stands for an argument on the same line.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from worker.failures.shapes import literal_of

TRANSLATIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "authentication failed": (
            "authentifizierung fehlgeschlagen",
            "échec d'authentification",
            "échec de l'authentification",
            "autenticación falló",
            "falló la autenticación",
            "autenticação falhou",
            "falha na autenticação",
            "鉴权失败",
            "身份验证失败",
            "身份驗證失敗",
        ),
        "repository 'x' not found": (
            "repository '*' nicht gefunden",
            "dépôt '*' non trouvé",
            "dépôt '*' introuvable",
            "repositorio '*' no encontrado",
            "repositório '*' inexistente",
            "repositório '*' não encontrado",
            "仓库 '*' 未找到",
            "版本库 '*' 未找到",
            "版本庫 '*' 未找到",
        ),
        "repository 'x' does not exist": (
            "repository '*' existiert nicht",
            "le dépôt '*' n'existe pas",
            "repositorio '*' no existe",
            "repositório '*' é inexistente",
            "仓库 '*' 不存在",
            "版本庫 '*' 不存在",
        ),
        "could not read username": (
            "konnte username * nicht lesen",
            "impossible de lire username",
            "no se pudo leer username",
            "无法读取 username",
        ),
        "the remote end hung up unexpectedly": (
            "die gegenseite hat unerwartet abgebrochen",
            "die gegenseite hat nach dem ersten kontakt abgebrochen",
            "l'hôte distant a fermé la connexion",
            "el remoto se colgó",
            "o lado remoto desligou",
            "o remoto desligou inesperadamente",
            "远端意外挂断",
            "远端在初始连接时即挂断",
            "遠端意外掛斷",
            "遠端在初始連線時即掛斷",
        ),
        "early eof": (
            "zu frühes dateiende",
            "fin de fichier prématurée",
            "eof temprano",
            "eof prematuro",
            "过早的文件结束符",
            "過早的檔案結束符",
        ),
        "rpc failed": ("rpc fehlgeschlagen", "échec rpc", "rpc falló", "rpc falhou", "rpc 失败", "rpc 失敗"),
        "bytes of body are still expected": (
            "bytes des bodys werden noch erwartet",
            "octets de corps sont encore attendus",
            "bytes de cuerpo se siguen esperando",
            "个字节的正文",
            "位元組的本文",
        ),
        "already exists and is not an empty directory": (
            "existiert bereits und ist kein leeres verzeichnis",
            "existe déjà et n'est pas un répertoire vide",
            "ya existe y no es un directorio vacío",
            "já existe e é pasta vazia nenhuma",
            "já existe e não é um diretório vazio",
            "已经存在, 并且不是一个空目录",
            "已經存在, 並且不是一個空目錄",
        ),
        "remote branch x not found in upstream": (
            "remote-branch * nicht im upstream-repository",
            "la branche distante * n'a pas été trouvée",
            "rama remota * no encontrada en upstream",
            "ramo remoto * por encontrar em upstream",
            "远程分支 * 在上游 * 未发现",
            "遠端分支 * 在上游 * 未發現",
        ),
        "couldn't find remote ref": (
            "konnte remote-referenz * nicht finden",
            "impossible de trouver la référence distante",
            "no se pudo encontrar ref remota",
            "no se puede encontrar la referencia remota",
            "incapaz encontrar ref remoto",
            "无法找到远程引用",
            "無法找到遠端引用",
        ),
        "pathspec 'x' did not match": (
            "pfadspezifikation '*' stimmt mit keinen",
            "le spécificateur de chemin '*' ne correspond",
            "ruta especificada '*' no concordó",
            "espetro-caminho '*' correspondeu a",
            "路径规格 '*' 未匹配",
            "路徑規格 '*' 未符合",
        ),
        "not a git repository": (
            "kein git-repository",
            "n'est un dépôt git",
            "n'est pas un dépôt git",
            "no es un repositorio git",
            "é repositório git nenhum",
            "não é um repositório git",
            "不是 git 仓库",
            "不是一个 git 仓库",
            "不是一個 git 版本庫",
        ),
        "invalid gitfile format": (
            "ungültiges gitfile-format",
            "format de fichier git invalide",
            "formato gitfile inv",
            "formato de ficheiro-git inválido",
            "无效的 gitfile 格式",
        ),
        "detected dubious ownership": (
            "dubiose besitzverhältnisse",
            "propriétaire douteux",
            "posesión dudosa",
            "可疑的仓库所有权",
            "可疑所有權",
        ),
        "another git process seems to be running": (
            "ein anderer git-prozess scheint",
            "un autre processus git est déjà lancé",
            "semble qu'un autre processus git",
            "otro proceso git parece estar",
            "outro processo git parece estar",
            "另外一个 git 进程",
            "另一個 git 處理程序",
        ),
        "unable to create thread: resource temporarily unavailable": (
            "kann thread nicht erzeugen",
            "impossible de créer le fil",
            "no es posible crear hilo",
            "incapaz criar fio",
            "不能创建线程",
            "不能建立執行緒",
        ),
        "loose object x is corrupt": (
            "loses objekt * ist beschädigt",
            "l'objet libre * est corrompu",
            "objeto suelto * está corrompido",
            "松散对象 *已损坏",
            "鬆散物件 *已損壞",
        ),
        "object file x is empty": (
            "objektdatei * ist leer",
            "le fichier objet * est vide",
            "archivo de objeto * está vacío",
            "对象文件 * 为空",
            "物件檔案 * 為空",
        ),
        "reference is not a tree": (
            'referenz ist kein "tree"-objekt',
            "la référence n'est pas un arbre",
            "la referencia no es un árbol",
            "引用不是一个树",
            "引用不是一個樹",
        ),
        "server does not allow request for unadvertised object": (
            "lehnt anfrage nach nicht angebotenem objekt",
            "le serveur n'autorise pas de requête",
            "no permite solicitudes de objetos inadvertidos",
            "服务器不允许请求未公开的对象",
            "伺服器不允許請求未公開的物件",
        ),
        "[rejected]": ("[zurückgewiesen]", "[rejeté]", "[rechazado]", "[rejeitado]", "[已拒绝]", "[已拒絕]"),
        "could not resolve host": ("konnte host nicht auflösen", "no se pudo resolver el host"),
        "unable to connect to": (
            "konnte nicht nach * verbinden",
            "impossible de se connecter à",
            "no es posible conectar a",
            "impossível conetar a",
            "无法连接到",
            "無法連線到",
        ),
        "connection refused": (
            "verbindungsaufbau abgelehnt",
            "connexion refusée",
            "conexión rehusada",
            "conexão recusada",
            "ligação recusada",
            "拒绝连接",
            "連線被拒絕",
        ),
        "connection timed out": (
            "wartezeit für die verbindung ist abgelaufen",
            "connexion terminée par expiration du délai d'attente",
            "expiró el tiempo de conexión",
            "tempo esgotado para conexão",
            "ligação expirada",
            "连接超时",
            "連線超過時間",
        ),
        "connection reset by peer": (
            "verbindung wurde vom kommunikationspartner zurückgesetzt",
            "connexion ré-initialisée par le correspondant",
            "conexión reinicializada por la máquina remota",
            "conexão fechada pela outra ponta",
            "ligação reposta pelo peer",
            "连接被对方重设",
            "連線被對方重設",
        ),
        "no space left on device": (
            "kein speicherplatz mehr verfügbar",
            "auf dem gerät ist kein speicherplatz",
            "aucun espace disponible sur le périphérique",
            "no queda espacio en el dispositivo",
            "não há espaço disponível no dispositivo",
            "sem espaço livre no dispositivo",
            "设备上没有空间",
            "裝置上已無多餘空間",
        ),
        "cannot allocate memory": (
            "nicht genügend hauptspeicher verfügbar",
            "ne peut allouer de la mémoire",
            "impossible d'allouer de la mémoire",
            "no se pudo asignar memoria",
            "não foi possível alocar memória",
            "impossível alocar memória",
            "无法分配内存",
            "無法配置記憶體",
        ),
        "permission denied": (
            "keine berechtigung",
            "permission non accordée",
            "permiso denegado",
            "permissão negada",
            "permissão recusada",
            "权限不够",
            "拒絕不符權限的操作",
        ),
        "temporary failure in name resolution": (
            "temporärer fehler bei der namensauflösung",
            "échec temporaire dans la résolution du nom",
            "fallo temporal en la resolución del nombre",
            "falha temporári",
            "域名解析暂时失败",
            "解析名稱時發生暫時性錯誤",
        ),
        "name or service not known": (
            "der name oder der dienst ist nicht bekannt",
            "nom ou service inconnu",
            "nombre o servicio desconocido",
            "nome ou serviço desconhecido",
            "未知的名称或服务",
            "名稱或服務未知",
        ),
        "file exists": (
            "die datei existiert bereits",
            "le fichier existe",
            "el fichero ya existe",
            "o ficheiro existe",
            "文件已存在",
            "檔案已存在",
        ),
        "remote error": (
            "fehler am anderen ende",
            "erreur distante",
            "error remoto",
            "erro remoto",
            "远程错误",
            "遠端錯誤",
        ),
    }
)
"""English -> its translations, lower case."""

_PUNCTUATION = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\uff08": "(",
        "\uff09": ")",
        "\uff0c": ", ",
        "\uff1a": ": ",
        "\uff1b": "; ",
        "\u3002": ". ",
    }
)


def _table() -> tuple[tuple[str, re.Pattern[str], str], ...]:
    """(literal, pattern, English) of every translation."""
    patterns = [
        (r"[^\n]{1,400}?".join(map(re.escape, words.split("*"))), english)
        for english, translations in TRANSLATIONS.items()
        for words in translations
    ]
    return tuple((literal_of(pattern), re.compile(pattern), english) for pattern, english in patterns)


_TABLE = _table()


def in_english(text: str) -> str:
    """A lower-case text with typographic signs made plain and known translations in English."""
    text = text.translate(_PUNCTUATION) if not text.isascii() else text
    for literal, pattern, english in _TABLE:
        if literal in text:
            text = pattern.sub(english, text)
    return text
