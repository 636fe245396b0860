/** The AWS SDK of the user, loaded on demand: its command classes for clients that send commands, its settings for URLs. */
import { importError, loadFirst } from '../clients/opened-client.js';

/** Named, because its declaration would otherwise repeat all of the SDK. */
type Sdk = typeof import('@aws-sdk/client-dynamodb');

export async function importDynamodb(): Promise<Sdk> {
  try {
    return await import('@aws-sdk/client-dynamodb');
  } catch (error) {
    throw importError('@aws-sdk/client-dynamodb', error);
  }
}

export type CommandName =
  | 'GetItemCommand'
  | 'UpdateItemCommand'
  | 'ScanCommand'
  | 'DescribeTableCommand'
  | 'DescribeTimeToLiveCommand'
  | 'CreateTableCommand'
  | 'UpdateTimeToLiveCommand';

let sdk: Sdk | null = null;

export async function commandNamed(name: CommandName): Promise<new (input: never) => unknown> {
  sdk ??= await loadFirst('DynamoDB', [{ name: '@aws-sdk/client-dynamodb', load: importDynamodb }]);
  return sdk[name];
}
