/**
 * The client that every Firestore contender gets: `@google-cloud/firestore` on the emulator, with its defaults. Round
 * trips are counted where a call is sent; a listener is none.
 */
import { Firestore } from '@google-cloud/firestore';

const PROJECT = 'holdfast';
/** The emulator takes any. Without them, the client would look for those of this machine. */
const CREDENTIALS = { client_email: 'emulator', private_key: 'emulator' };

let roundTrips = 0;

/** @param {{ methodDefinition: { path: string } }} call */
function counted(call) {
  if (!call.methodDefinition.path.endsWith('/Listen')) roundTrips += 1;
  return call;
}

/** @param {string} url */
export function openFirestore(url) {
  return openFirestoreApart(url, { 'grpc.callInvocationTransformer': counted });
}

/** For the holder whom the waiters stand against: what it asks is not theirs. @param {string} url */
export function openFirestoreApart(url, settings = {}) {
  const { hostname: host, port } = new URL(url);
  return new Firestore({
    projectId: PROJECT,
    host,
    port: Number(port),
    ssl: false,
    credentials: CREDENTIALS,
    ...settings,
  });
}

export function firestoreRoundTrips() {
  return roundTrips;
}

/** @param {string} url */
export async function deleteEverything(url) {
  const all = `${url}/emulator/v1/projects/${PROJECT}/databases/(default)/documents`;
  const { ok, status } = await fetch(all, { method: 'DELETE' });
  if (!ok) throw new Error(`The emulator answered ${status}.`);
}
