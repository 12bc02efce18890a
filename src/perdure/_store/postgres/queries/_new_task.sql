    %(uid)s::text, %(namespace)s::text, %(id)s::text, %(status)s::text, %(name)s::text, %(description)s::text,
    %(agent)s::text, %(tags)s::text, %(config)s::bytea, %(depends_on)s::text,
    1, sha256(decode(repeat('00', 32), 'hex') || %(digest)s::bytea), %(at)s::bigint, %(at)s::bigint
