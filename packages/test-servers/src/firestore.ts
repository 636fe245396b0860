/**
 * A private Firestore emulator: Google's own, from the Cloud SDK (package google-cloud-cli-firestore-emulator) or from
 * firebase-tools, run by the system's Java. It keeps everything in memory: a restart is a new database. One named in
 * HOLDFAST_TEST_FIRESTORE_URL (http://HOST:PORT) is used as it is.
 */
import { borrowed, givenUrl } from './borrowed.js';
import { timeout } from './clock.js';
import { findFirestoreJar } from './find.js';
import { need } from './install.js';
import { listensOn } from './listener.js';
import { sharedUrl } from './shared-url.js';
import { type Controls, type Plan, supervise } from './supervise.js';

export interface FirestoreServer extends Controls {
  /** http://HOST:PORT; the host and port are what FIRESTORE_EMULATOR_HOST takes. */
  readonly url: string;
}

const JAVA = ['-Xmx384m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Duser.language=en'] as const;
const MAIN = 'com.google.cloud.datastore.emulator.firestore.CloudFirestore';

function plan(java: string, jar: string): Plan {
  return {
    name: 'firestore',
    gentle: 'SIGTERM',
    launch: (port, folder) => {
      const args = [...JAVA, '-cp', jar, MAIN, '--host', '127.0.0.1', '--port', String(port)];
      return { command: java, args, folder };
    },
    answers: async (port, pid) =>
      listensOn(pid, port) && (await fetch(`http://127.0.0.1:${port}/`, { signal: timeout(5000) })).ok,
  };
}

async function startPrivate(): Promise<FirestoreServer> {
  const java = await need('firestore');
  const jar = findFirestoreJar();
  if (jar === undefined) throw new Error('the jar of the Firestore emulator is gone');
  const controls = await supervise(plan(java, jar));
  return Object.assign(controls, { url: `http://${controls.host}:${controls.port}` });
}

/** One for all tests that do not ask for their own: Java takes seconds to start and to become fast. */
let shared: Promise<string> | undefined;

export async function startFirestore({ own = false } = {}): Promise<FirestoreServer> {
  if (own) return startPrivate();
  const given = givenUrl('firestore');
  if (given !== undefined) return borrowed('firestore', given);
  shared ??= sharedUrl('firestore').then(async (url) => url ?? (await startPrivate()).url);
  return borrowed('firestore', await shared);
}
