/** Signs requests to AWS by its Signature Version 4: who sends them, and that nobody has changed them on the way. */
import { createHash, createHmac } from 'node:crypto';

export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface SignedRequest {
  readonly method: string;
  readonly path: string;
  /** With lower-case names; all of them are signed. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const ALGORITHM = 'AWS4-HMAC-SHA256';

export class Signer {
  readonly #region: string;
  readonly #service: string;
  /** Of one secret and one day. */
  #key: { readonly of: string; readonly value: Buffer } | null = null;

  constructor(region: string, service: string) {
    this.#region = region;
    this.#service = service;
  }

  /** The headers to send: those given, the time, and the signature. */
  headersOf(request: SignedRequest, credentials: Credentials, at: Date): Record<string, string> {
    const time = at.toISOString().replace(/[-:]|\.\d+/g, '');
    const day = time.slice(0, 8);
    const { sessionToken } = credentials;
    const headers: Record<string, string> = { ...request.headers, 'x-amz-date': time };
    if (sessionToken) headers['x-amz-security-token'] = sessionToken;
    const names = Object.keys(headers).sort();
    const signed = names.join(';');
    const lines = names.map((name) => `${name}:${headers[name]?.trim().replace(/ +/g, ' ')}\n`).join('');
    const canonical = `${request.method}\n${request.path}\n\n${lines}\n${signed}\n${sha256(request.body)}`;
    const scope = `${day}/${this.#region}/${this.#service}/aws4_request`;
    const text = `${ALGORITHM}\n${time}\n${scope}\n${sha256(canonical)}`;
    const signature = hmac(this.#keyOf(credentials.secretAccessKey, day), text).toString('hex');
    const credential = `${credentials.accessKeyId}/${scope}`;
    headers.authorization = `${ALGORITHM} Credential=${credential}, SignedHeaders=${signed}, Signature=${signature}`;
    return headers;
  }

  #keyOf(secret: string, day: string): Buffer {
    const of = `${day} ${secret}`;
    if (this.#key?.of !== of) {
      const region = hmac(hmac(`AWS4${secret}`, day), this.#region);
      this.#key = { of, value: hmac(hmac(region, this.#service), 'aws4_request') };
    }
    return this.#key.value;
  }
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
