/** What the page says of the engines on a server: what runs there, with which settings, and how to read it. */
import { FAMILIES } from './families.js';
import { RETRY_MS, sizesFor } from './plan.js';
import { number } from './words.js';

/** @param {import('./types.d.ts').Report} report */
export function serversText({ sizes, versions }) {
  const family = FAMILIES.find(({ reach }) => reach === 'network');
  const { ttlMs, leases, waiters, trials, killedTtlMs } = family ? sizesFor(family, sizes) : sizes;
  return `### Redis and PostgreSQL: what runs

Private servers on the same machine, reached over loopback, the same for all contenders of an engine: Redis
${versions['redis-server'] ?? '(not in this run)'} without persistence, PostgreSQL ${versions['postgres-server'] ?? '(not in this run)'} as it is configured by default, which syncs every commit to
the disk. Every run finds the server empty. All use the same client with its defaults: ioredis with one connection, \`pg\`
with a pool of ten. Round trips are counted where the client sends.

| workload | what happens |
| --- | --- |
| sequential, 64 in flight, 16 contenders | as above. Of the sequential runs also the time of a cycle (p50) and its round trips |
| 16 in 4 processes | as above. A number in a file is read and written under the lock; an update that is lost means two holders at once |
| hand-over | four processes, one loop each: 5 ms of work under the lock, then 5 to 15 ms away. From the end of one's work to the turn of another process that was waiting by then |
| held leases | ${number(leases)} leases with a ttl of ${number(ttlMs / 1_000)} s, taken evenly over a third of it |
| idle waiters | ${number(waiters)} in a process, on a key that somebody else holds |
| holder killed | ${number(trials)} locks with a ttl of ${number(killedTtlMs / 1_000)} s, held by four processes that are killed (SIGKILL) at different moments between two renewals, each with a waiter in a fifth process: from the kill to the waiter's turn |

| contender | settings |
| --- | --- |
| peers | waiters look again after ${RETRY_MS} ms, without jitter and without limit; idle ones at verrou's default of 250 ms. One lock object a loop where the library has such an object |
| \`redlock-4\`, \`redlock-5\` | one server: what is compared is the library, not the algorithm for several. 5 is the beta |
| \`redis-semaphore\` | its Mutex. Held locks are renewed every third of the ttl, as often as Holdfast renews |
| \`verrou-redis\`, \`verrou-knex\`, \`verrou-kysely\` | \`@verrou/core\` on these; knex and kysely on the pool of \`pg\` that the others have |
| \`minimum-redis\`, \`minimum-postgres\` | written by hand: a script or function of a few lines, one call an operation, that reads the server's time, keeps a token, and compares before it deletes or ends |
| \`bare-redis\`, \`bare-postgres\` | \`SET NX PX\` and a script that compares before it deletes; an upsert and a delete that compares. No token |

The minimum and the bare one cannot wait or renew, and run only where nobody contends.
`;
}

export const SERVERS_READING = `### Reading the figures of Redis and PostgreSQL

- **A cycle is two round trips, as in the minimum.** What Holdfast adds to them is the work of the script or function: a line
  of waiters, marks of ended holds, a decision number; and in the process a deadline on two clocks and renewal.
- **Many in flight travel together.** On PostgreSQL a batch is one statement and one sync of the disk, which is where the
  factor comes from. On Redis there is no sync to share: what is saved is the client's work a command.
- **Contended within a process, the server is hardly asked,** as on the other stores. The peers wait for their next look.
- **Between processes** the release names the next in line, and the server pushes it. A hand-over is one release and one
  claim; on PostgreSQL each of them waits for the disk. The peers find out when they look again.
- **Where the marks are missed.** The minimum shows how much room there is. With 64 in flight on Redis the least script that
  keeps a token is hardly faster than the best peer, and Holdfast's decides more: it parses the command, reads the record,
  decides, and writes it with its end (\`INFO commandstats\` tells the time of either). A lone cycle shows the same work, and that of
  the deadline and the renewal in the process. On PostgreSQL a function sets up its expressions anew in every transaction, and
  Holdfast's has more of them; a batch shares that.
- **A killed holder** is waited for until its lease is over, and no longer: the waiters know when that is. A kill finds
  between two thirds of the ttl and all of it left.
`;
