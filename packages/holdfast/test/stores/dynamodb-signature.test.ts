/** Signature Version 4: the example that AWS publishes, and random requests as the SDK's own signer signs them. */
import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';
import { SignatureV4 } from '@smithy/signature-v4';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Signer } from '../../src/stores/dynamodb/signature.js';

const PUBLISHED = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
};

test('the published examples have the published signatures', () => {
  const at = new Date('2015-08-30T12:36:00Z');
  const signatureOf = (method: string): string | undefined => {
    const request = { method, path: '/', headers: { host: 'example.amazonaws.com' }, body: '' };
    return new Signer('us-east-1', 'service').headersOf(request, PUBLISHED, at).authorization;
  };
  const start =
    'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=';
  expect(signatureOf('GET')).toBe(`${start}5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31`);
  expect(signatureOf('POST')).toBe(
    `${start}5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b`,
  );
});

/** As the SDK's signer wants its hash. */
class Sha256 {
  readonly #hash: Hash | Hmac;

  constructor(secret?: string | Buffer) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', secret);
  }

  update(data: string | Uint8Array): void {
    this.#hash.update(data);
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
}

test("signs as the SDK's own signer does, whatever is sent, by whoever, in whatever region and day", async () => {
  const word = fc.stringMatching(/^[a-zA-Z0-9/+=-]{1,40}$/);
  const value = fc.stringMatching(/^[!-~]([ -~]{0,30}[!-~])?$/);
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        region: fc.stringMatching(/^[a-z]{2}-[a-z]{4,9}-[1-9]$/),
        target: value,
        body: fc.string({ unit: 'binary', maxLength: 300 }),
        accessKeyId: word,
        secretAccessKey: word,
        sessionToken: fc.option(word, { nil: undefined }),
        at: fc.date({ min: new Date('2000-01-01'), max: new Date('2099-12-31'), noInvalidDate: true }),
      }),
      async ({ region, target, body, accessKeyId, secretAccessKey, sessionToken, at }) => {
        const credentials = { accessKeyId, secretAccessKey, ...(sessionToken ? { sessionToken } : {}) };
        const headers = {
          'content-type': 'application/x-amz-json-1.0',
          host: 'dynamodb.example:8000',
          'x-amz-target': target,
        };
        const theirs = new SignatureV4({
          service: 'dynamodb',
          region,
          credentials,
          sha256: Sha256 as never,
          applyChecksum: false,
        });
        const request = { method: 'POST', protocol: 'https:', hostname: 'dynamodb.example', path: '/' };
        const unsigned = { ...request, query: {}, headers, body };
        const signed = await theirs.sign(unsigned, { signingDate: at });
        const ours = new Signer(region, 'dynamodb').headersOf(
          { method: 'POST', path: '/', headers, body },
          credentials,
          at,
        );
        expect(ours.authorization).toBe(signed.headers.authorization);
      },
    ),
    { numRuns: 200 },
  );
});
