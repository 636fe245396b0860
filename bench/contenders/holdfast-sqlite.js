/** Holdfast on its SQLite store, a file of a fresh folder. The holder apart has a connection of its own. */
import { join } from 'node:path';
import { openStore } from 'holdfast';
import { openHoldfast } from './holdfast.js';

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async open({ folder, ttlMs }) {
    const url = `sqlite:${join(folder, 'locks.db')}`;
    return openHoldfast(await openStore(url), { ttlMs, openApart: () => openStore(url) });
  },
};
