export default [{ rules: { 'no-console': 'error' } }];
