// @ts-check
/** Another process: waits for the lock, several times if asked to, says when it has it, and keeps it until it is killed. */
import { PEERS } from './peers.js';

const [, , name = '', place = '', key = '', ttlMs = '0', count = '1'] = process.argv;
const peer = PEERS[name];
if (!peer) throw new Error(`There is no ${name}.`);
const session = await peer.open(place);
// Listening keeps the process alive.
process.on('disconnect', () => process.exit());
process.send?.('waiting');
await Promise.race(Array.from({ length: Number(count) }, () => session.acquire(key, Number(ttlMs))));
process.send?.('has it');
