/** What the statuses of Firestore's client mean. A client of the user's own retries by itself: a status is that of its last attempt. */
import { describe, expect, it } from 'vitest';
import { NotExecutedError, UnsupportedError } from '../../src/protocol/index.js';
import { explainedError, explainedWriteError } from '../../src/stores/firestore/errors.js';

const status = (code: number, name: string, details: string): Error =>
  Object.assign(new Error(`${code} ${name}: ${details}`), { code, details });

describe('errors of Firestore', () => {
  it('a connection that failed is unknown where the client may have retried, and unsent where it sends once', () => {
    const details = 'No connection established. Last error: Error: connect';
    for (const reason of ['ETIMEDOUT 10.0.0.1:443', 'ECONNREFUSED 127.0.0.1:1']) {
      const error = status(14, 'UNAVAILABLE', `${details} ${reason}`);
      expect(explainedWriteError(error, 'k')).toBe(error);
      expect(explainedError(error)).toBe(error);
    }
    const once = status(2, 'UNKNOWN', `the call was sent once: ${details} ECONNREFUSED 127.0.0.1:1`);
    expect(explainedWriteError(once, 'k')).toBeInstanceOf(NotExecutedError);
  });

  it.each([
    status(7, 'PERMISSION_DENIED', 'Missing or insufficient permissions.'),
    status(16, 'UNAUTHENTICATED', 'Invalid credentials.'),
  ])('a right that is missing: a read says that nothing was changed, a write does not know: %s', (error) => {
    expect(explainedError(error, 'k')).toBeInstanceOf(UnsupportedError);
    expect(explainedError(error, 'k')).toMatchObject({
      message: expect.stringMatching(/Nothing was changed/),
    });
    const written = explainedWriteError(error, 'k');
    expect(written).not.toBeInstanceOf(UnsupportedError);
    expect(written).not.toBeInstanceOf(NotExecutedError);
    expect(written).toMatchObject({ cause: error, message: expect.stringMatching(/roles\/datastore\.user/) });
    expect(String(written)).not.toMatch(/Nothing was changed/);
  });

  it('a database in Datastore mode refuses calls without a precondition: the advice is Native mode', () => {
    const text =
      'The Cloud Firestore API is not available for Firestore in Datastore Mode database projects/p';
    const refused = explainedError(status(9, 'FAILED_PRECONDITION', text));
    expect(refused).toBeInstanceOf(UnsupportedError);
    expect(String(refused)).toMatch(/Datastore Mode.*Native mode/s);
  });
});
