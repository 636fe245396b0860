/** The unit of systemd, as its directives say. */
import { read } from '../repository/tree.js';

export const unit = read('deploy/systemd/holdfast.service');

/** All values of a directive, in order. */
export const valuesOf = (directive: string): readonly string[] =>
  [...unit.matchAll(new RegExp(`^${directive}=(.*)$`, 'gm'))].map(([, value = '']) => value);

export const lastOf = (directive: string): string => valuesOf(directive).at(-1) ?? '';
