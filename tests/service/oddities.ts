/** What a service should never be sent, and will be. */

/** In whatever only its sender may know: no log line and no answer to another may have it. */
export const SECRET = 'sEcReT';

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** In the place of values. */
export const WEIRD: readonly Json[] = [
  ...[null, true, false, 0, -1, 1, 0.5, 1e-9, Number.MAX_SAFE_INTEGER + 1, -1e308, 1e308, 4_294_967_296],
  ...[
    '',
    ' ',
    '0',
    '30s',
    '-1s',
    '1e9h',
    '99999999999h',
    'constructor',
    '__proto__',
    'toString',
    'hasOwnProperty',
  ],
  ...[
    '\u0000',
    '\ud800',
    'e\u0301',
    '\u202e',
    '💥'.repeat(50),
    'x'.repeat(600),
    '../../etc/passwd',
    "' OR 1=1 --",
  ],
  ...[
    '%00',
    '%2f',
    '${7*7}',
    '<script>alert(1)</script>',
    '\r\nset-cookie: a=b',
    '*',
    '>',
    'a b',
    'v1:guess',
  ],
  ...[[], {}, [[]], [null], { length: 1e9 }, { toJSON: 'x' }, { $ref: '#' }, { process: 'x', number: 1 }],
];
export const PIECES = [
  '%',
  '%00',
  '%2F',
  '%2e%2e',
  '%F0%9F%92%A5',
  '%ff',
  '%ED%A0%80',
  '..',
  '*',
  ':',
  '~',
  '%0d%0a',
  '{}',
  ';',
  '\\',
];
export const NAMES = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hold',
  'ttl',
  'kind',
  'admin',
  '',
  '\u0000',
  'x',
];
export const FILES = [
  'index.html',
  'main.js',
  'dashboard.css',
  'package.json',
  '..%2fpackage.json',
  'constructor',
];

export const HEADERS: readonly (readonly [string, string])[] = [
  ['x-request-id', 'a'.repeat(100)],
  ['x-request-id', '${jndi:ldap://x}'],
  ['idempotency-key', `${SECRET}${'é'.repeat(9)}`],
  ['idempotency-key', ''],
  ['accept-encoding', 'gzip;q=0, br;q=banana'],
  ['if-none-match', '*, W/"", ,'],
  ['expect', '100-continue'],
  ['x-forwarded-for', "1.1.1.1' --"],
  ['origin', 'http://evil.example'],
  ['host', 'other'],
  ['content-encoding', 'gzip'],
  ['last-event-id', '\u00ff'],
  ['cookie', 'a'.repeat(2_000)],
  ['connection', 'close'],
];

const head = 'POST /v2/batch HTTP/1.1\r\nhost: x\r\n';

/** No HTTP at all, or only nearly. */
export const MALFORMED: readonly string[] = [
  '\r\n\r\n\r\n',
  'GET\r\n\r\n',
  'GET / HTTP/9.9\r\n\r\n',
  'GET / HTTP/1.1\r\n\r\n',
  `GET /${'a'.repeat(70_000)} HTTP/1.1\r\nhost: x\r\n\r\n`,
  `GET / HTTP/1.1\r\nhost: x\r\nx: ${'a'.repeat(70_000)}\r\n\r\n`,
  `GET / HTTP/1.1\r\n${'a: b\r\n'.repeat(3_000)}\r\n`,
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001',
  `${head}content-length: -1\r\n\r\n`,
  `${head}content-length: 5\r\ncontent-length: 6\r\n\r\nhello`,
  `${head}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
  `${head}transfer-encoding: chunked\r\n\r\nZZ\r\n`,
  `${head}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
  `${head}content-type: application/json\r\ncontent-length: 10\r\n\r\n{}`,
  `${head}bad header\r\n\r\n`,
  `${head}a: b\r\n c: d\r\n\r\n`,
  `${head}a\u0000: b\r\n\r\n`,
  'OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n',
  'CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n',
  'GET http://other/v2/probe HTTP/1.1\r\nhost: x\r\n\r\n',
  'GET / HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n',
  'GET / HTTP/1.1\r\nhost: x\r\nexpect: nonsense\r\n\r\n',
];
