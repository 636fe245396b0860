-- The table and the functions that applications have, as the migration of theirs makes them.
CREATE TABLE distributed_locks (
    lock_name VARCHAR(255) PRIMARY KEY,
    holder_id VARCHAR(255) NOT NULL,
    acquired_at TIMESTAMPTZ NOT NULL DEFAULT NOW(),
    expires_at TIMESTAMPTZ NOT NULL,
    metadata JSONB DEFAULT '{}',

    CONSTRAINT valid_expiry CHECK (expires_at > acquired_at)
);

CREATE INDEX idx_locks_expires ON distributed_locks(expires_at);
CREATE INDEX idx_locks_holder ON distributed_locks(holder_id);

CREATE OR REPLACE FUNCTION acquire_lock(
    p_lock_name VARCHAR(255),
    p_holder_id VARCHAR(255),
    p_ttl_seconds INTEGER DEFAULT 30,
    p_metadata JSONB DEFAULT '{}'
) RETURNS BOOLEAN AS $$
DECLARE
    v_now TIMESTAMPTZ := NOW();
    v_expires_at TIMESTAMPTZ := v_now + (p_ttl_seconds || ' seconds')::INTERVAL;
BEGIN
    DELETE FROM distributed_locks
    WHERE lock_name = p_lock_name
    AND expires_at < v_now;

    INSERT INTO distributed_locks (lock_name, holder_id, acquired_at, expires_at, metadata)
    VALUES (p_lock_name, p_holder_id, v_now, v_expires_at, p_metadata)
    ON CONFLICT (lock_name) DO UPDATE
    SET
        holder_id = EXCLUDED.holder_id,
        acquired_at = EXCLUDED.acquired_at,
        expires_at = EXCLUDED.expires_at,
        metadata = EXCLUDED.metadata
    WHERE distributed_locks.holder_id = p_holder_id
       OR distributed_locks.expires_at < v_now;

    RETURN EXISTS (
        SELECT 1 FROM distributed_locks
        WHERE lock_name = p_lock_name
        AND holder_id = p_holder_id
    );
END;
$$ LANGUAGE plpgsql;

CREATE OR REPLACE FUNCTION release_lock(
    p_lock_name VARCHAR(255),
    p_holder_id VARCHAR(255)
) RETURNS BOOLEAN AS $$
BEGIN
    DELETE FROM distributed_locks
    WHERE lock_name = p_lock_name
    AND holder_id = p_holder_id;

    RETURN FOUND;
END;
$$ LANGUAGE plpgsql;

CREATE OR REPLACE FUNCTION extend_lock(
    p_lock_name VARCHAR(255),
    p_holder_id VARCHAR(255),
    p_additional_seconds INTEGER
) RETURNS BOOLEAN AS $$
BEGIN
    UPDATE distributed_locks
    SET expires_at = NOW() + (p_additional_seconds || ' seconds')::INTERVAL
    WHERE lock_name = p_lock_name
    AND holder_id = p_holder_id
    AND expires_at > NOW();

    RETURN FOUND;
END;
$$ LANGUAGE plpgsql;
