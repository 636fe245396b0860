/**
 * The names of errors as texts, because minifiers rename classes. Node also prints the name of the class if it differs.
 */
export function keepName(type: { readonly prototype: Error }, name: string): void {
  type.prototype.name = name;
  Object.defineProperty(type, 'name', { value: name });
}
