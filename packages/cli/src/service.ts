/** Loads the lock service: only when it is asked for, because loading is slow, and because it may be left out. */
import { EXIT, Failure } from './failure.js';
import { codeOf } from './printing/outlet.js';

export type Service = typeof import('holdfast-service');

export async function loadService(): Promise<Service> {
  try {
    return await import('holdfast-service');
  } catch (error) {
    if (codeOf(error) !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new Failure(
      EXIT.unavailable,
      'the lock service is not installed: npm install holdfast-service, beside holdfast-cli',
      { code: 'unsupported' },
    );
  }
}
