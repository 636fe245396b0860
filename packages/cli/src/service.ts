/** Loads the lock service, or its part for API keys, only when needed: loading is slow, and the package is optional. */
import { EXIT, Failure } from './failure.js';
import { codeOf } from './printing/outlet.js';

export type Service = typeof import('holdfast-service');
export type ApiKeys = typeof import('holdfast-service/api-keys');

export const loadService = (): Promise<Service> => installed(() => import('holdfast-service'));

export const loadApiKeys = (): Promise<ApiKeys> => installed(() => import('holdfast-service/api-keys'));

async function installed<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (codeOf(error) !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new Failure(
      EXIT.unavailable,
      'the lock service is not installed: npm install holdfast-service, beside holdfast-cli',
      { code: 'unsupported' },
    );
  }
}
