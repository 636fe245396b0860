/** Hints: whoever is concerned is told, across connections, and told again when it does not come. */
import assert from 'node:assert/strict';
import { NAME_AGAIN_MS, type Store, type Traits, type Why, WINDOW_MS } from '../../protocol/index.js';
import { HINT_MS_MAX } from '../harness.js';
import { eventually } from '../pause.js';
import { claimOf, type Promised, releaseOf, renewOf, type Scene, say, sayFor } from './scene.js';

/** Longer than `inMs`: on a machine so slow that it ends before the waiter comes, the case is tried again. */
const EXPIRY_MS = WINDOW_MS + 100;

const canPush = (traits: Traits): boolean => traits.queue && traits.push;

export const hints: readonly Promised[] = [
  {
    name: 'F32: every command that frees the key tells the next in line, whatever freed it, and again if unheard',
    inMs: WINDOW_MS,
    needs: canPush,
    async try(scene) {
      const other = await scene.another();
      for (const freeing of ['release', 'expiry', 'evict', 'dead head'] as const) {
        await hintsAfter(scene, other, freeing);
      }
    },
  },
  {
    name: 'holders hear that others wait, and that they were evicted',
    needs: canPush,
    async try(scene) {
      const { store } = scene;
      const other = await scene.another();
      const name = scene.key();
      const heard = await listening(store, 'holder', scene);
      const hold = { process: scene.process(), number: 1 };
      const { token } = await sayFor(store, claimOf(name, hold, { inbox: heard.inbox }), 'granted');
      await sayFor(other, claimOf(name, { process: scene.process(), number: 1 }), 'busy');
      await heard.hint(name, 'waiting');
      await sayFor(other, { kind: 'evict', key: name, upToToken: token }, 'evicted');
      await heard.hint(name, 'evicted');
    },
  },
  {
    name: 'a listener that stopped hears nothing more',
    needs: canPush,
    async try(scene) {
      const { store } = scene;
      const name = scene.key();
      const [gone, stays] = [await listening(store, 'gone', scene), await listening(store, 'stays', scene)];
      const hold = { process: scene.process(), number: 1 };
      await sayFor(store, claimOf(name, hold, { inbox: gone.inbox }), 'granted');
      await gone.stop();
      await sayFor(
        store,
        claimOf(name, { process: scene.process(), number: 1 }, { inbox: stays.inbox }),
        'busy',
      );
      await sayFor(store, releaseOf(name, hold), 'released');
      await stays.hint(name, 'turn');
      assert.deepEqual(gone.heard, []);
    },
  },
];

async function listening(store: Store, what: string, scene: Scene) {
  const inbox = `${what}-${scene.process()}`;
  const heard: { key: string; why: Why }[] = [];
  assert.ok(store.listen, 'a store that pushes must have listen');
  const stop = await store.listen(inbox, (key, why) => heard.push({ key, why }));
  return {
    inbox,
    heard,
    stop,
    hint: (key: string, why: Why, from = 0): Promise<true> =>
      eventually(`the hint "${why}" for ${what}`, scene.harness.hintMsMax ?? HINT_MS_MAX, () =>
        heard.slice(from).some((hint) => hint.key === key && hint.why === why) ? true : undefined,
      ),
  };
}

async function hintsAfter(scene: Scene, other: Store, freeing: 'release' | 'expiry' | 'evict' | 'dead head') {
  const { store } = scene;
  const name = scene.key();
  const heard = await listening(other, freeing, scene);
  const hold = { process: scene.process(), number: 1 };
  const ttlMs = freeing === 'expiry' ? EXPIRY_MS : 30_000;
  const { token } = await sayFor(store, claimOf(name, hold, { ttlMs }), 'granted');
  const dead = { process: scene.process(), number: 1 };
  if (freeing === 'dead head') await sayFor(store, claimOf(name, dead), 'busy');
  const waiter = claimOf(name, { process: scene.process(), number: 1 }, { inbox: heard.inbox });
  await sayFor(other, waiter, 'busy');
  assert.deepEqual(heard.heard, [], 'woken before its turn');
  const bystander = renewOf(name, { process: scene.process(), number: 1 });
  switch (freeing) {
    case 'evict':
      await sayFor(store, { kind: 'evict', key: name, upToToken: token }, 'evicted');
      break;
    case 'expiry':
      await scene.past(EXPIRY_MS + 20);
      await say(store, bystander);
      break;
    default:
      await sayFor(store, releaseOf(name, hold), 'released');
  }
  if (freeing === 'dead head') {
    await scene.past(WINDOW_MS + 20);
    await say(store, bystander);
  }
  await heard.hint(name, 'turn');
  const before = heard.heard.length;
  await scene.past(NAME_AGAIN_MS + 10);
  await say(store, bystander);
  await heard.hint(name, 'turn', before);
  await sayFor(other, waiter, 'granted', `after ${freeing}`);
  await heard.stop();
}
