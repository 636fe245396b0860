/** Holdfast on its memory store. */
import { memoryStore } from 'holdfast/memory';
import { openHoldfast } from './holdfast.js';

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async open({ ttlMs }) {
    const store = memoryStore();
    return openHoldfast(store, { ttlMs, openApart: async () => store });
  },
};
