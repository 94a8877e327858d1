/** An error for the operator: the directory of the store cannot be used. */
export class StoreDirectoryError extends Error {
  override readonly name = 'StoreDirectoryError';
}
