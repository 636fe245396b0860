/** The server's time in whole milliseconds, as it is at this moment and not when the statement began. */
export const NOW_MS = 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint';
