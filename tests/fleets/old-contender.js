/**
 * A process of an application that calls `acquire_lock`: takes the lock, works, gives it back, again and again, and says
 * when a turn begins and when it is over. Ends with its input.
 */
import pg from 'pg';
import { workUnder } from '../faults/turns.js';

const LEASE_SECONDS = 2;

/** @type {{ url: string, name: string, key: string }} */
const { url, name, key } = JSON.parse(process.argv[2] ?? '{}');
const pool = new pg.Pool({ connectionString: url, max: 1 });
let over = false;
process.stdin.on('end', () => {
  over = true;
});
process.stdin.resume();
console.log('ready');

for (let turns = 1; !over; ) {
  const sentMs = performance.now();
  const { rows } = await pool.query('SELECT acquire_lock($1, $2, $3) AS done', [key, name, LEASE_SECONDS]);
  if (rows[0].done) {
    // It has no tokens: the number of its turn stands for one.
    const lock = {
      token: turns++,
      get held() {
        return performance.now() - sentMs < LEASE_SECONDS * 1_000;
      },
    };
    const lease = /** @type {import('holdfast').Lease} */ (/** @type {unknown} */ (lock));
    const turn = await workUnder(name, lease, 5, (begun) => console.log(`began ${JSON.stringify(begun)}`));
    if (turn) console.log(`turn ${JSON.stringify(turn)}`);
    await pool.query('SELECT release_lock($1, $2)', [key, name]);
  }
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 40));
}
await pool.end();
