import { expect, it } from 'vitest';
import { redact, redactIn } from '../src/printing/redaction.js';

it.each([
  ['redis://me:hunter2@host:6379/0', 'redis://me:***@host:6379/0'],
  ['redis://:hunter2@host', 'redis://:***@host'],
  ['redis://me:hun@ter2@host', 'redis://me:***@host'],
  ['redis://me:hun/ter2@host', 'redis://me:***@host'],
  ['redis://me:hun?ter2@host', 'redis://me:***@host'],
  ['redis//me:hunter2@host', 'redis//me:***@host'],
  ['postgres://me@host/db', 'postgres://me@host/db'],
  ['postgres://host:5432/db', 'postgres://host:5432/db'],
  ['postgres://host/db?password=hunter2&sslmode=require', 'postgres://host/db?password=***&sslmode=require'],
  ['nats://me:hunter2@host:4222/locks', 'nats://me:***@host:4222/locks'],
  ['nats://hunter2@host:4222/locks', 'nats://***@host:4222/locks'],
  ['nats+tls://hunter2@a:4222,b:4222', 'nats+tls://***@a:4222,b:4222'],
  ['nats://a:4222,b:4222/locks?token=hunter2', 'nats://a:4222,b:4222/locks?token=***'],
  ['https://hunter2@locks.example.com', 'https://***@locks.example.com'],
  ['http://hunter2@a:8080,b:8080/locks', 'http://***@a:8080,b:8080/locks'],
  ['https://locks.example.com:8080', 'https://locks.example.com:8080'],
  ['https://locks.example.com?apiKey=hunter2', 'https://locks.example.com?apiKey=***'],
  ['https://locks.example.com/?api-key=hunter2&a=b', 'https://locks.example.com/?api-key=***&a=b'],
  [
    'dynamodb://key:hunter2@eu-west-1/locks?endpoint=http://h:8000',
    'dynamodb://key:***@eu-west-1/locks?endpoint=http://h:8000',
  ],
  ['dynamodb://eu-west-1/locks?endpoint=http://h:8000', 'dynamodb://eu-west-1/locks?endpoint=http://h:8000'],
  ['sqlite:/var/lib/app/locks.db', 'sqlite:/var/lib/app/locks.db'],
  ['nonsense', 'nonsense'],
])('%s is shown as %s', (url, shown) => {
  expect(redact(url)).toBe(shown);
  expect(redactIn(`cannot open ${url} now`, url)).toBe(`cannot open ${shown} now`);
});
