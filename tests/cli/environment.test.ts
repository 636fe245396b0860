/** Variables that have no effect are named: nobody should look at other locks than they think. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SETTINGS } from 'holdfast-service';
import { describe, expect, it } from 'vitest';
import { usePlace } from './holdfast.js';

const place = usePlace();

describe('the environment', () => {
  it('a mistyped variable is named, with the one that was probably meant, and the command goes on', async () => {
    const mistyped = { HOLDFAST_STOER: 'redis://nowhere', HOLDFAST_LOGLEVEL: 'warn', HOLDFAST_DATABASE: 'x' };
    const { status, stderr } = await place.run(['ls'], mistyped);
    expect(status).toBe(0);
    expect(stderr).toContain(
      'HOLDFAST_STOER is not a setting of Holdfast, and is ignored. Did you mean HOLDFAST_STORE?',
    );
    expect(stderr).toContain('Did you mean HOLDFAST_LOG_LEVEL?');
    expect(stderr).not.toMatch(/redis:\/\/nowhere|HOLDFAST_DATABASE/);
    const served = await place.run(['serve', '--print-config'], { ...mistyped, HOLDFAST_PROT: '9090' });
    expect(served.stderr).toContain('HOLDFAST_DATABASE is not a setting of Holdfast, and is ignored.\n');
    expect([served.status, served.stderr]).toEqual([
      0,
      expect.stringContaining('Did you mean HOLDFAST_PORT?'),
    ]);
  });

  it('every variable that counts is known, and so is what Kubernetes and run set', async () => {
    const known = Object.fromEntries(SETTINGS.map(({ variable }) => [variable, '']));
    const others = {
      ...{ HOLDFAST_API_KEY: 'x', HOLDFAST_LOCK: 'default/a', HOLDFAST_TOKEN: '1' },
      ...{ HOLDFAST_SERVICE_HOST: '10.0.0.1', HOLDFAST_WEB_PORT: 'tcp://10.0.0.1:8080' },
      HOLDFAST_PORT_8080_TCP_ADDR: '10.0.0.1',
    };
    const { status, stderr } = await place.run(['ls', '--json'], {
      ...known,
      ...others,
      HOLDFAST_STORE: place.store,
    });
    expect([status, stderr]).toEqual([0, '']);
  });

  it('where HOLDFAST_STORE outdoes the store of LockServiceCentral, that is said', async () => {
    const central = { SPRING_PROFILES_ACTIVE: 'dynamodb', LOCKER_DYNAMODB_REGION: 'eu-west-1' };
    const { stderr } = await place.run(['ls'], central);
    expect(stderr).toContain(
      'SPRING_PROFILES_ACTIVE, LOCKER_DYNAMODB_REGION: ignored, because HOLDFAST_STORE names the store.',
    );
    const named = await place.run(['ls', '--json', '--store', place.store], central);
    expect([named.status, named.stderr]).toEqual([0, '']);
  });

  it('a setting of LockServiceCentral that does not exist is refused by every command', async () => {
    const { status, stderr } = await place.run(['ls'], {
      ...{ HOLDFAST_STORE: '', LOCKER_DYNAMODB_TABLE: 'locks' },
    });
    expect([status, stderr]).toEqual([64, expect.stringContaining('LOCKER_DYNAMODB_TABLE is not a setting')]);
  });

  it('serve reads a file of properties, as LockServiceCentral does', async () => {
    const path = join(place.folder, 'application.properties');
    writeFileSync(path, 'locker.dynamodb.tableName=my-locks\nserver.port=9090\nlogging.level.root=info\n');
    const { status, stdout, stderr } = await place.run(['serve', '--config', path, '--print-config'], {
      HOLDFAST_STORE: '',
    });
    expect([status, stderr]).toEqual([0, 'holdfast: logging.level.root: not used.\n']);
    expect(JSON.parse(stdout)).toMatchObject({
      ...{ store: 'dynamodb://us-east-1/my-locks?layout=lock-service-central', port: 9_090 },
    });
  });
});
