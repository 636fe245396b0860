/** `firestore://PROJECT/COLLECTION`: the store on a client of its own. */
import { systemClock } from '../../clock.js';
import { InvalidArgumentError, type Store } from '../../protocol/index.js';
import { layoutNamed } from '../clients/layout.js';
import { loadFirst, storeOn } from '../clients/opened-client.js';
import { addressIn, flagIn, given, hostAndPort, parseServerUrl } from '../clients/url.js';
import { GrpcCalls } from './grpc-calls.js';
import * as layouts from './layouts.js';
import { FIRESTORE_CLIENTS } from './open-client.js';
import { firestoreStore } from './store.js';

const FORM = 'firestore://PROJECT/COLLECTION';
const OPTIONS = ['database', 'queue', 'layout', 'credentials', 'emulator'] as const;
/** Less than the store waits. */
const CALL_MS_MAX = 3_000;
const LISTEN = '/google.firestore.v1.Firestore/Listen';

/** An emulator takes any. Without them, the client would look for those of this machine. */
const ANY = { client_email: 'emulator', private_key: 'emulator' };

export async function openStore(_scheme: string, rest: string, clients = FIRESTORE_CLIENTS): Promise<Store> {
  const url = parseServerUrl('firestore', rest, FORM, OPTIONS);
  const [{ host: project = '', port = null } = {}] = url.addresses;
  if (url.addresses.length > 1 || port !== null || url.user !== null || url.password !== null) {
    throw new InvalidArgumentError(
      `firestore:// is followed by a project, as in ${FORM}. For an emulator, use the option: ${FORM}?emulator=HOST:PORT.`,
    );
  }
  const emulator = addressIn(url, 'emulator');
  const options = given({
    collection: url.path.replace(/\/$/, '') || undefined,
    queue: flagIn(url, 'queue'),
    layout: layoutNamed(layouts, url.options.get('layout'), 'Firestore'),
  });
  const { FIRESTORE_EMULATOR_HOST: usual } = process.env;
  const calls = new GrpcCalls(CALL_MS_MAX, LISTEN);
  const open = await loadFirst('Firestore', clients);
  const client = open({
    ...given({ projectId: project || undefined, databaseId: url.options.get('database') }),
    ...given({ keyFilename: url.options.get('credentials') }),
    ...(emulator && { ...emulator, ssl: false }),
    ...((emulator || usual) && { credentials: ANY }),
    ...calls.settings,
  });
  const where = emulator ? hostAndPort(emulator.host, emulator.port) : (usual ?? 'Firestore');
  const end = async (): Promise<void> => {
    calls.cancel();
    // A read that was called just now is not known to the client yet, and would be an unhandled rejection of it.
    await new Promise<void>((resolve) => systemClock.afterTurn(resolve));
    await client.terminate();
  };
  return storeOn({ client, connection: { where, error: () => null, end } }, (own) =>
    firestoreStore(own, options),
  );
}
