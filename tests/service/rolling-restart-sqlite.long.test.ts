import { afterEach, expect, it } from 'vitest';
import { usePlace } from '../cli/holdfast.js';
import { clearScene, until } from '../scene.js';
import { Restartable, restartUnderLoad } from './rolling-restart.js';

const place = usePlace();
afterEach(clearScene);

it('one of two services on one store is restarted: no lease is lost, and waiters go on', async () => {
  const first = await Restartable.start(place, place.store);
  const second = await Restartable.start(place, place.store);
  await restartUnderLoad([first], [first.url, second.url]);
});

it('a client of plain HTTP is told to come again, and holds what it held', async () => {
  const [first, second] = [
    await Restartable.start(place, place.store),
    await Restartable.start(place, place.store),
  ];
  const post = (url: string, what: string, body: object): Promise<Response> =>
    fetch(`${url}/v2/locks/shop/stock/${what}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const held = await post(first.url, 'acquire', { ttl: '60s' });
  const { hold, token } = (await held.json()) as { readonly hold: string; readonly token: number };
  const wish = { ttl: '60s', wait: '60s' };
  const waiting = post(first.url, 'acquire', wish);
  const waitersAt = async (url: string): Promise<number> =>
    ((await (await fetch(`${url}/v2/locks/shop/stock`)).json()) as { readonly waiting: number }).waiting;
  await until(async () => (await waitersAt(second.url)) === 1, 'one waits');
  const restart = first.restart();
  const answer = await waiting;
  expect([answer.status, await answer.json()]).toMatchObject([503, { code: 'closing' }]);
  const again = post(second.url, 'acquire', wish);
  expect((await post(second.url, 'renew', { hold, ttl: '60s' })).status).toBe(200);
  await restart;
  expect((await post(first.url, 'release', { hold })).status).toBe(200);
  const granted = (await (await again).json()) as { readonly token: number };
  expect(granted.token).toBeGreaterThan(token);
});
