/** Layouts of other software in NATS, for the option `layout` of `natsStore` and `createBucket`. */
export type { NatsLayout } from '../layout.js';
export { cloops } from './cloops.js';
