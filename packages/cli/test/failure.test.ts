import { InvalidArgumentError, StoreError, UnsupportedError } from 'holdfast';
import { expect, it } from 'vitest';
import { EXIT, failureOf } from '../src/failure.js';

const driver = new Error('connect ECONNREFUSED');

it.each([
  [new StoreError('The release failed.', { operation: 'release', outcome: 'unknown', cause: driver })],
  [new StoreError('The read failed.', { operation: 'inspect', outcome: 'not-executed', cause: driver })],
])('a failure of the store is told with the words of its driver: %s', (error) => {
  const failure = failureOf(error);
  expect(failure?.status).toBe(EXIT.unavailable);
  expect(failure?.message).toMatch(/^(The release failed: )?connect ECONNREFUSED$/);
});

it.each([
  new UnsupportedError('A client package is needed: npm install pg.', {
    cause: new Error('pg is not installed.'),
  }),
  new InvalidArgumentError('ttl is 0.', { cause: new Error('0 is too short') }),
])('every other error is told by its own message, which says all of it: %s', (error) => {
  expect(failureOf(error)?.message).toBe(error.message);
});

it('an error that is none of the library is a bug', () => {
  expect(failureOf(driver)).toBeNull();
});
