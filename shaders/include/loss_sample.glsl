// The gradient at a sample from what it gathers; u = x + y and d = x - y, less the pivot of the windows.
float loss_gradient(vec3 gathered, float u, float d) {
    return gathered.x + u * gathered.y + d * gathered.z;
}
