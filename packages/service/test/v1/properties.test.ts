import { InvalidArgumentError } from 'holdfast';
import { expect, it } from 'vitest';
import { propertiesIn } from '../../src/v1/properties.js';

/** As that framework writes it: not a template of JavaScript. */
const REFERENCE = ['jwt.issuer=$', '{ISSUER:none}'].join('');

it('a file of properties says what the variables of the same names say', () => {
  const text = [
    '# DynamoDB table',
    'locker.dynamodb.tableName=my-locks',
    '! and the rest',
    '  locker.dynamodb.region : us-west-2\r',
    'locker.dynamodb.end-point http://localhost:8000',
    'locker.dynamodb.secretAccessKey=a\\=b\\u0041\\\\',
    'spring.profiles.active = dynamodb, \\',
    '    prod',
    'server.port=9090',
    '',
  ].join('\n');
  expect(propertiesIn(text)).toEqual({
    values: {
      LOCKER_DYNAMODB_TABLENAME: 'my-locks',
      LOCKER_DYNAMODB_REGION: 'us-west-2',
      LOCKER_DYNAMODB_ENDPOINT: 'http://localhost:8000',
      LOCKER_DYNAMODB_SECRETACCESSKEY: 'a=bA\\',
      SPRING_PROFILES_ACTIVE: 'dynamodb, prod',
      SERVER_PORT: '9090',
    },
    notes: [],
  });
});

it('a property that has no effect is named, without its value', () => {
  const { values, notes } = propertiesIn('logging.level.root=secret\nspring.application.name=locks');
  expect(values).toEqual({});
  expect(notes).toEqual(['logging.level.root: not used.', 'spring.application.name: not used.']);
});

it('a reference to another value is refused, and so is a line without a name', () => {
  expect(() => propertiesIn(REFERENCE)).toThrow(InvalidArgumentError);
  expect(() => propertiesIn(REFERENCE)).toThrow(/^jwt\.issuer refers to another value/);
  expect(() => propertiesIn('=value')).toThrow('a line without a name');
});
