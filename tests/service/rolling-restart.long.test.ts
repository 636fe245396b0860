import { available, startPostgres, startRedis } from 'holdfast-test-servers';
import { afterEach, describe, it } from 'vitest';
import { usePlace } from '../cli/holdfast.js';
import { atTheEnd, clearScene } from '../scene.js';
import { balance, Restartable, restartUnderLoad } from './rolling-restart.js';

const place = usePlace();
afterEach(clearScene);

const three = (store: string): Promise<readonly Restartable[]> =>
  Promise.all([1, 2, 3].map(() => Restartable.start(place, store)));

describe.each(['by their addresses', 'behind a load balancer'])('three services, used %s', (how) => {
  const use = async (store: string): Promise<void> => {
    const services = await three(store);
    const urls = how === 'by their addresses' ? services.map(({ url }) => url) : [await balance(services)];
    await restartUnderLoad(services, urls);
  };

  it.runIf(available('redis'))('on Redis, are restarted in turn', async () => {
    const redis = await startRedis();
    atTheEnd(() => redis.stop());
    await use(redis.url);
  });

  it.runIf(available('postgres'))('on PostgreSQL, are restarted in turn', async () => {
    const postgres = await startPostgres();
    atTheEnd(() => postgres.stop());
    const database = await postgres.createDatabase();
    await place.run(['migrate', '--store', database]);
    await use(database);
  });
});
