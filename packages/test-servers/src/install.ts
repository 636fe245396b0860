/**
 * Installs what is missing, where that is allowed: as root, with apt, in one batch, one process at a time. Elsewhere a
 * missing server is skipped by name, and the command that would install it is printed. With CI=true it is a failure:
 * a run that tested nothing must not look green.
 */
import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { givenUrl, isBorrowable } from './borrowed.js';
import { find, findDynamodbJar, findOnPath, type ServerName } from './find.js';

const APT_PACKAGES: Readonly<Record<ServerName, string | undefined>> = {
  redis: 'redis-server',
  postgres: 'postgresql',
  'postgres-15': 'postgresql',
  pgbouncer: 'pgbouncer',
  'postgres-18': undefined,
  postgrest: undefined,
  nats: 'nats-server',
  dynamodb: 'openjdk-17-jre-headless',
  // Without a font it draws no letters.
  chromium: 'chromium fonts-dejavu-core',
};

const INSTALL_MS_MAX = 300_000;
const told = new Set<ServerName>();

/**
 * Package lists are fetched only when the names are not known yet. What this system does not have at all must not keep
 * the others away: then they come one by one.
 */
const SCRIPT = `
install() { apt-get -o DPkg::Lock::Timeout=240 install -y --no-install-recommends "$@"; }
install "$@" && exit
apt-get update
install "$@" && exit
failed=0
for name; do install "$name" || failed=1; done
exit $failed`;

function packagesOf(servers: readonly ServerName[]): readonly string[] {
  return [...new Set(servers.flatMap((server) => APT_PACKAGES[server]?.split(' ') ?? []))];
}

function command(server: ServerName): string {
  const names = packagesOf([server]);
  const fromNpm = names.length === 0 || (server === 'dynamodb' && findDynamodbJar() === undefined);
  return fromNpm ? 'npm ci' : `apt-get install -y --no-install-recommends ${names.join(' ')}`;
}

async function install(packages: readonly string[]): Promise<void> {
  const flock = findOnPath('flock');
  const lock = join(tmpdir(), 'holdfast-test-servers-install.lock');
  const [file, before] = flock === undefined ? ['sh', []] : [flock, ['-w', '240', lock, 'sh']];
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const args = [...before, '-c', SCRIPT, 'install', ...packages];
  await promisify(execFile)(file, args, { env, timeout: INSTALL_MS_MAX, maxBuffer: 1 << 26 });
}

/** Tries to have these servers, and resolves whether or not it could: `available` tells. */
export async function ensureInstalled(servers: readonly ServerName[]): Promise<void> {
  const packages = packagesOf(servers.filter((server) => find(server) === undefined));
  if (packages.length === 0 || process.getuid?.() !== 0 || findOnPath('apt-get') === undefined) return;
  try {
    await install(packages);
  } catch (error) {
    console.error(`apt-get could not install ${packages.join(', ')}: ${String(error).slice(0, 2000)}`);
  }
}

const message = (server: ServerName): string =>
  `${server} is not installed, so its tests cannot run. To install it: ${command(server)}`;

/**
 * For `describe.runIf(available('redis'))`: false skips by name on a laptop, and throws in CI. Tests that stop, pause or
 * kill their server say `{ own: true }`: the user's server does not help them.
 */
export function available(server: ServerName, { own = false } = {}): boolean {
  const given = !own && isBorrowable(server) && givenUrl(server) !== undefined;
  if (given || find(server) !== undefined) return true;
  if (process.env.CI === 'true') throw new Error(message(server));
  if (!told.has(server)) console.warn(`skipped: ${message(server)}`);
  told.add(server);
  return false;
}

/** The binary or its folder, installed if need be. */
export async function need(server: ServerName): Promise<string> {
  if (find(server) === undefined) await ensureInstalled([server]);
  const found = find(server);
  if (found === undefined) throw new Error(message(server));
  return found;
}
