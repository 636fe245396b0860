/** Wake-ups: sent to the right waiters and holders, across connections, and again to a waiter that does not claim. */
import assert from 'node:assert/strict';
import {
  NAME_AGAIN_MS,
  type Reply,
  type Store,
  type Traits,
  WAITER_LIFE_MS,
  type Why,
  WINDOW_MS,
} from '../../protocol/index.js';
import { HINT_MS_MAX } from '../harness.js';
import { eventually } from '../pause.js';
import {
  type CaseContext,
  type CaseDefinition,
  claimOf,
  expectKind,
  releaseOf,
  renewOf,
  send,
  sendExpecting,
  sendTogether,
} from './case-context.js';

const EXPIRY_MS = 100;

const canPush = (traits: Traits): boolean => traits.queue && traits.push;

const cases: readonly CaseDefinition[] = [
  {
    name: 'F32: every command that frees the key wakes the next waiter, whatever freed it, and again if it does not come',
    needs: canPush,
    async try(context) {
      const other = await context.another();
      for (const freeing of ['release', 'expiry', 'evict', 'dead head'] as const) {
        await hintsAfter(context, other, freeing);
      }
    },
  },
  {
    name: 'holders hear that others wait, and that they were evicted',
    needs: canPush,
    async try(context) {
      const { store, name } = context;
      const other = await context.another();
      const heard = await listening(store, 'holder', context);
      const hold = context.newHold();
      const { token } = await sendExpecting(store, claimOf(name, hold, { inbox: heard.inbox }), 'granted');
      await sendExpecting(other, claimOf(name, context.newHold()), 'busy');
      await heard.hint(name, 'waiting');
      await sendExpecting(other, { kind: 'evict', key: name, upToToken: token }, 'evicted');
      await heard.hint(name, 'evicted');
    },
  },
  {
    name: 'a listener that stopped gets no more wake-ups',
    needs: canPush,
    async try(context) {
      const { store, name } = context;
      const [gone, stays] = [
        await listening(store, 'gone', context),
        await listening(store, 'stays', context),
      ];
      const hold = context.newHold();
      await sendExpecting(store, claimOf(name, hold, { inbox: gone.inbox }), 'granted');
      await gone.stop();
      await sendExpecting(store, claimOf(name, context.newHold(), { inbox: stays.inbox }), 'busy');
      await sendExpecting(store, releaseOf(name, hold), 'released');
      await stays.hint(name, 'turn');
      assert.deepEqual(gone.heard, []);
    },
  },
];

export const wakeUps = cases.map((one) => ({ ...one, withinMs: WAITER_LIFE_MS }));

async function listening(store: Store, what: string, context: CaseContext) {
  const inbox = `${what}-${context.process()}`;
  const heard: { key: string; why: Why }[] = [];
  assert.ok(store.listen, 'a store that pushes must have listen');
  const stop = await store.listen(inbox, (key, why) => heard.push({ key, why }));
  return {
    inbox,
    heard,
    stop,
    hint: (key: string, why: Why, from = 0): Promise<void> =>
      eventually(`the hint "${why}" for ${what}`, context.harness.hintMsMax ?? HINT_MS_MAX, () =>
        heard.slice(from).some((hint) => hint.key === key && hint.why === why),
      ),
  };
}

async function hintsAfter(
  context: CaseContext,
  other: Store,
  freeing: 'release' | 'expiry' | 'evict' | 'dead head',
) {
  const { store } = context;
  const name = context.key();
  const heard = await listening(other, freeing, context);
  const hold = context.newHold();
  const ttlMs = freeing === 'expiry' ? EXPIRY_MS : 30_000;
  const waiter = claimOf(name, context.newHold(), { inbox: heard.inbox });
  const [granted] = await sendTogether(store, [
    [claimOf(name, hold, { ttlMs }), 'granted'],
    ...(freeing === 'dead head' ? [[claimOf(name, context.newHold()), 'busy'] as const] : []),
    [waiter, 'busy'],
  ]);
  const { token } = expectKind(granted as Reply, 'granted');
  assert.deepEqual(heard.heard, [], 'woken before its turn');
  const bystander = renewOf(name, context.newHold());
  const freed = await free();
  await heard.hint(name, 'turn');
  const before = heard.heard.length;
  await context.past(NAME_AGAIN_MS + 10);
  const { now } = await send(store, bystander);
  // A waiter that has missed its window is not woken again: on a slow machine the command may come that late.
  if (now < freed.now + WINDOW_MS) await heard.hint(name, 'turn', before);
  await sendExpecting(other, waiter, 'granted', `after ${freeing}`);
  await heard.stop();

  async function free(): Promise<Reply> {
    switch (freeing) {
      case 'release':
        return await sendExpecting(store, releaseOf(name, hold), 'released');
      case 'evict':
        return await sendExpecting(store, { kind: 'evict', key: name, upToToken: token }, 'evicted');
      case 'expiry':
        await context.past(EXPIRY_MS + 20);
        return await send(store, bystander);
      case 'dead head':
        await sendExpecting(store, releaseOf(name, hold), 'released');
        await context.past(WINDOW_MS + 20);
        return await send(store, bystander);
    }
  }
}
