/**
 * Loaded before a script, with `--import`: from here on the runtime's clock counts from the start of this process, as on
 * Bun and Deno, or from the time before it that OWN_CLOCK_MS says.
 */
const hrtime = process.hrtime.bigint;
const startedNs = hrtime();
const beforeNs = BigInt(process.env.OWN_CLOCK_MS ?? 0) * 1_000_000n;

process.hrtime.bigint = () => hrtime() - startedNs + beforeNs;
