// Computes the gradient at a sample from its gathered sums. u = x + y and d = x - y are given minus the pivot of the windows.
float loss_gradient(vec3 gathered, float u, float d) {
    return gathered.x + u * gathered.y + d * gathered.z;
}
