/** One instance of a schedule. Says its first tick, and each tick that it runs. Ends by itself when its input ends. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, openStore } from 'holdfast';
import { schedule } from 'holdfast/schedule';

const [url = '', owner = '', every = ''] = process.argv.slice(2);
const locks = createLocks(await openStore(url), { owner });
const made = schedule(
  locks,
  'job',
  { every: Number(every) },
  async ({ signal }, tick) => {
    console.log(`ran ${tick.getTime()}`);
    await sleep(5, undefined, { signal });
  },
  { overlap: 'queue', onError: (error) => console.log('ERROR', error) },
);
process.stdin.resume().on('end', async () => {
  await made.stop();
  await locks.close();
  console.log('closed');
});
console.log(`ready ${made.next?.getTime()}`);
