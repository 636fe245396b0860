/** Distinguishes an unknown path (404) from a method that the path does not allow (405). */
import type { FastifyInstance } from 'fastify';

export class Methods {
  readonly #routes: { readonly pattern: RegExp; readonly method: string }[] = [];

  constructor(app: FastifyInstance) {
    app.addHook('onRoute', ({ url, method }) => {
      const pattern = new RegExp(`^${url.split('/').map(segment).join('/')}/?$`);
      for (const name of [method].flat()) this.#routes.push({ pattern, method: name });
    });
  }

  /** The methods allowed on the path of this URL. */
  allowedOn(url: string): readonly string[] {
    const path = url.split('?')[0] ?? url;
    const allowed = this.#routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method);
    return [...new Set(allowed)].sort();
  }
}

function segment(text: string): string {
  if (text === '*') return '.*';
  return text.startsWith(':') ? '[^/]+' : text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
