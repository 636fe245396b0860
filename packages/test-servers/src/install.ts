/**
 * Installs missing servers where it can: as root, with apt, in one batch, one process at a time. Elsewhere the tests of a
 * missing server are skipped, and the command that installs it is printed. With CI=true a missing server is a failure: a
 * run that tested nothing must not be green.
 */
import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { givenUrl, isBorrowable } from './borrowed.js';
import { find, findDynamodbJar, findFirestoreJar, findOnPath, type ServerName } from './find.js';

const APT_PACKAGES: Readonly<Record<ServerName, string | undefined>> = {
  redis: 'redis-server',
  postgres: 'postgresql',
  'postgres-15': 'postgresql',
  pgbouncer: 'pgbouncer',
  'postgres-18': undefined,
  postgrest: undefined,
  nats: 'nats-server',
  // Without the package that runs it at once, and makes a database in the system's folders.
  mariadb: 'mariadb-server-core mariadb-client-core',
  etcd: 'etcd-server',
  dynamodb: 'openjdk-17-jre-headless',
  // Java alone: the emulator is in no package of Debian.
  firestore: 'openjdk-17-jre-headless',
  // Without a font it draws no text.
  chromium: 'chromium fonts-dejavu-core',
  // Shells, for the completion of the command.
  zsh: 'zsh',
  fish: 'fish',
  prometheus: 'prometheus',
  'systemd-analyze': 'systemd',
};

const INSTALL_MS_MAX = 300_000;
const told = new Set<ServerName>();

/**
 * Updates the package lists only when the packages are unknown. One by one at last, so that a package this system does not
 * have does not prevent the others.
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
  if (server === 'firestore' && findFirestoreJar() === undefined) {
    return 'install google-cloud-cli-firestore-emulator of the Google Cloud SDK, or name its jar in HOLDFAST_FIRESTORE_EMULATOR';
  }
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

/** Tries to install these servers. Resolves even if it could not; `available` says which are there. */
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

/** Neither apt nor npm has the Firestore emulator, so a CI that does not name its jar may be without it. */
function isRequired(server: ServerName): boolean {
  return process.env.CI === 'true' && (server !== 'firestore' || findFirestoreJar() !== undefined);
}

/**
 * For `describe.runIf(available('redis'))`: false for a missing server, which throws in CI. `own`: whether a private one can
 * be started, for tests that stop, pause or kill their server.
 */
export function available(server: ServerName, { own = false } = {}): boolean {
  const given = !own && isBorrowable(server) && givenUrl(server) !== undefined;
  if (given || find(server) !== undefined) return true;
  if (isRequired(server)) throw new Error(message(server));
  if (!told.has(server)) console.warn(`skipped: ${message(server)}`);
  told.add(server);
  return false;
}

/** The binary or its folder, installed if necessary. */
export async function need(server: ServerName): Promise<string> {
  if (find(server) === undefined) await ensureInstalled([server]);
  const found = find(server);
  if (found === undefined) throw new Error(message(server));
  return found;
}
