/**
 * The least that a lock in a JetStream KV bucket can be, by plain requests: create and delete by revision. A message is
 * stored if the key's last revision is the one that is expected: that of the marker which this process left there, or
 * none; the revision is the token. The marker of a delete is stored if the last revision is the token. No renewal, and
 * expiry by this machine's clock; who finds something else looks what it is, and if the key is held again after a while.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { headers } from '@nats-io/transport-node';
import { askJetstream, natsRoundTrips, openNats, openNatsApart } from '../nats-client.js';
import { RETRY_MS } from '../plan.js';

/** @typedef {import('@nats-io/transport-node').NatsConnection} Connection */

const BUCKET = 'minimum';
const WRONG_LAST_SEQUENCE = 10_071;
const ANSWER_MS_MAX = 2_000;

/** The revision, or undefined if the last one is not the one expected. @param {Connection} connection @param {string} key @param {string} payload @param {number} expected @param {string} [operation] */
async function put(connection, key, payload, expected, operation) {
  const sent = headers();
  sent.set('Nats-Expected-Last-Subject-Sequence', String(expected));
  if (operation !== undefined) sent.set('KV-Operation', operation);
  const options = { timeout: ANSWER_MS_MAX, headers: sent };
  const answer = await connection.request(`$KV.${BUCKET}.${key}`, payload, options);
  /** @type {{ seq?: number, error?: { err_code: number, description: string } }} */
  const { seq, error } = answer.json();
  if (error && error.err_code !== WRONG_LAST_SEQUENCE) throw new Error(error.description);
  return error ? undefined : seq;
}

/** The revision to take it by, or undefined while it is held. @param {Connection} connection @param {string} key */
async function freeRevision(connection, key) {
  const question = JSON.stringify({ last_by_subj: `$KV.${BUCKET}.${key}` });
  const answer = await connection.request(`$JS.API.STREAM.MSG.GET.KV_${BUCKET}`, question);
  /** @type {{ message?: { seq: number, data?: string } }} */
  const { message } = answer.json();
  if (!message?.data) return message?.seq ?? 0;
  const { expiresAt } = JSON.parse(Buffer.from(message.data, 'base64').toString('utf8'));
  return expiresAt <= Date.now() ? message.seq : undefined;
}

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async prepare({ url }) {
    const connection = await openNatsApart(url);
    await askJetstream(connection, `STREAM.CREATE.KV_${BUCKET}`, {
      name: `KV_${BUCKET}`,
      subjects: [`$KV.${BUCKET}.>`],
      storage: 'file',
      retention: 'limits',
      discard: 'new',
      max_msgs_per_subject: 1,
      max_consumers: -1,
      max_msgs: -1,
      max_bytes: -1,
      max_age: 0,
      allow_rollup_hdrs: true,
      allow_direct: true,
    });
    await connection.close();
  },
  async open({ url, ttlMs }) {
    const connection = await openNats(url);
    /** @type {Map<string, number>} */
    const markers = new Map();
    /** @param {string} key */
    const take = async (key) => {
      /** @type {number | undefined} */
      let expected = markers.get(key) ?? 0;
      for (;;) {
        if (expected === undefined) await sleep(RETRY_MS);
        else {
          const payload = JSON.stringify({ owner: randomUUID(), expiresAt: Date.now() + ttlMs });
          const token = await put(connection, key, payload, expected);
          if (token !== undefined) return token;
        }
        expected = await freeRevision(connection, key);
      }
    };
    return {
      cycle: (key, work) => async () => {
        const token = await take(key);
        if (work) await work();
        const marker = await put(connection, key, '', token, 'DEL');
        if (marker !== undefined) markers.set(key, marker);
      },
      storeCalls: natsRoundTrips,
      close: () => connection.close(),
    };
  },
};
