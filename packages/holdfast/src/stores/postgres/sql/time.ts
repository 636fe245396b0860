/**
 * The server's time in whole milliseconds, as it is at this moment and not when the statement began. Whatever the path
 * of names: `probe` asks for it without any function of ours.
 */
export const NOW_MS =
  'pg_catalog.floor(extract(epoch FROM clock_timestamp()) OPERATOR(pg_catalog.*) 1000)::bigint';

/**
 * `delete_after` is indexed, and a row whose indexed columns stay as they are is rewritten within its page, without
 * touching any index. So it is what `expendableAt` says, rounded up: it moves a few times in a minute at most.
 */
const GRID_MS = 10_000;

export const onGrid = (ms: string): string => `((${ms}) / ${GRID_MS} + 1) * ${GRID_MS}`;

/** How far ahead of what is needed it may stay. */
export const FAR_MS = 30_000;
