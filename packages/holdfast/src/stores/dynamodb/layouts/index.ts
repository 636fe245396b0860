/** The layouts of other software. */
import { InvalidArgumentError } from '../../../protocol/index.js';
import type { Layout } from '../layout.js';
import { dynamodbLockGo } from './dynamodb-lock-go.js';
import { lockServiceCentral } from './lock-service-central.js';
import { singleTable } from './single-table.js';

export type LayoutName = 'single-table' | 'dynamodb-lock-go' | 'lock-service-central';

const LAYOUTS: ReadonlyMap<unknown, Layout> = new Map([
  ['single-table', singleTable],
  ['dynamodb-lock-go', dynamodbLockGo],
  ['lock-service-central', lockServiceCentral],
]);

export function layoutNamed(name: LayoutName): Layout {
  const layout = LAYOUTS.get(name);
  if (layout) return layout;
  throw new InvalidArgumentError(
    `There is no layout "${String(name)}" for DynamoDB. Layouts: ${[...LAYOUTS.keys()].join(', ')}.`,
  );
}
